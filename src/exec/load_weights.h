// Checkpoint bytes -> the static region, in the layouts that the plan chose.
#pragma once

#include <functional>

#include "base/result.h"
#include "base/thread_pool.h"
#include "exec/arena.h"
#include "file/checkpoint.h"
#include "plan/plan.h"

namespace hone {

// Bytes of the buffer of each thread through which weights pass on their way into Panel16: whole panels of
// 16 rows, about this much. They stay in the second cache between read and packing.
inline constexpr std::int64_t kStagingBytes = std::int64_t{1} << 18;

// The staging buffers that loading `plan` from `checkpoint` takes: for each thread kStagingBytes, or the rows
// of one panel of the widest weight; and the rounded rows of a piece, where the checkpoint has a weight in
// another type.
std::int64_t staging_bytes(const Plan& plan, const Checkpoint& checkpoint);

// Called with bytes done and bytes in all.
using LoadProgress = std::function<void(std::int64_t done, std::int64_t total)>;

// Reads every weight of the plan with pread (its pages never count as memory of this process) and packs it,
// on all threads of the pool, and writes the constants. A matrix that the checkpoint has in a float type and
// the plan in blocks is rounded by encode_row. Errors: (File) a read that fails; a tensor whose size is not
// what the plan was made for.
Status load_weights(const Plan& plan, const Checkpoint& checkpoint, ThreadPool& pool, const Arena& statics,
                    const LoadProgress& progress);

}  // namespace hone
