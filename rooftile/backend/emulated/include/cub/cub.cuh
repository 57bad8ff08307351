#pragma once
#error "rooftile: the emulated device has no CUB: a kernel here shows how it reduces"
