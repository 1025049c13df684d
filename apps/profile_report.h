// A profile as a document, as a report for people, and beside another one.
#pragma once

#include <string>
#include <vector>

#include "apps/verb.h"
#include "engine/profile_run.h"

namespace hone {

struct ProfileContext {
  std::string model;
  std::int64_t prompt_tokens = 0;
  int threads = 1;
  std::string isa;
  std::string level;
  std::int64_t predicted_bytes = 0;
  std::int64_t peak_bytes = 0;       // that the process grew by
  std::int64_t recording_bytes = 0;  // of that, for the recording
  std::string no_limits;             // why the machine's limits are not known; empty: they are
  std::int64_t begin_ns = 0;         // zero of the samples' times
};

// What is printed beside the number.
inline constexpr std::string_view kUtilisation =
    "the time that the useful operations (as the op rows count them) take at the measured peak of their "
    "type, "
    "over the wall time of prefill and decode";

// Launch kinds that the diagnosis looks at.
inline constexpr std::size_t kDiagnosed = 5;

Json profile_json(const Profile& profile, const ProfileContext& context);
std::string profile_text(const Profile& profile, const ProfileContext& context);

// One number of two runs. `other` or `now` is null where a run does not have it.
struct ComparedNumber {
  std::string name;
  std::string unit;
  Json other;
  Json now;
  Json ratio;          // now / other, or null
  bool minor = false;  // of an op that takes less than 1 % of its phase in both
};

// A document of an earlier run. Errors (BadInput): it cannot be read, or is none.
Result<Json> read_profile(const std::string& path);
// `other` is one of read_profile, `now` of profile_json.
std::vector<ComparedNumber> compare_profiles(const Json& other, const Json& now);
Json comparison_json(const std::vector<ComparedNumber>& rows);
std::string comparison_text(const std::vector<ComparedNumber>& rows, const Json& other, const Json& now);

}  // namespace hone
