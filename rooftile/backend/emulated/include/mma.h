#pragma once
#error "rooftile: the emulated device has no nvcuda::wmma: matrix instructions live in rooftile/backend/cuda"
