#pragma once
// What `rooftile devices` asks of a GPU, behind DeviceFunctions.
#include "rooftile/core/plugin.h"

namespace rooftile::cuda {

Status describe(const CudaLaunch& launch, DeviceDescription& description);
Status launch_cost(const CudaLaunch& launch, double& host_us, double& device_us, double& round_trip_us);

}  // namespace rooftile::cuda
