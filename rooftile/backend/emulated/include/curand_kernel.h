#pragma once
#error "rooftile: the emulated device has no cuRAND"
