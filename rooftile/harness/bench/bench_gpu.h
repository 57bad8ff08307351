#pragma once
// Times variants on a GPU, or on the emulated device, beside a device copy of the same bytes and the
// baselines.
#include "rooftile/harness/bench/bench.h"

namespace rooftile::harness {

/// As bench(), for the queue's device: each case of the specs' BenchCases::gpu, or of the shapes asked for;
/// with Scope::full also the ladders, on the first f32 case. Each sample begins with the second-level cache
/// filled with other data; copy and kernel take turns, and blocks of such rounds alternate with the
/// baselines'. Times are the device's own, between two events around the launches.
///
/// A record holds, beside bench()'s fields, "build" (a hash of the library and its plug-in) and "runs": for
/// each run that it was made of its "id", "command" and "copies", device copies of several sizes; a result's
/// "run" names the one that it is from. A result's "copy_us" is the copy in turns with rooftile's call, a
/// baseline's the one in turns with the baselines, in their process.
///
/// The emulated device gets tiny cases: its times say nothing, the way to a record is the same.
/// `options.resumed` must be of this machine and build: else std::runtime_error with a sentence.
nlohmann::json bench_gpu(const BenchOptions& options, const Queue& queue);

/// One record of the parts of a run, which must be of one machine and build. A case that several hold is
/// taken from the first.
nlohmann::json merge_parts(const std::vector<nlohmann::json>& parts);

/// What a call costs the host more than a bare launch of an empty kernel, both measured in turns: an array
/// for the record's "overheads".
nlohmann::json measure_gpu_overheads(const Queue& queue);

}  // namespace rooftile::harness
