#pragma once
#error "rooftile: the emulated device has no fp8 conversions yet"
