#include <algorithm>
#include <fmt/format.h>
#include <tuple>

#include "apps/profile_report.h"

namespace hone {
namespace {

Error no_profile(const std::string& path, std::string actual) {
  return Error{ErrorCode::BadInput,
               Fault::User,
               path,
               "the file is no profile",
               "a document that `hone profile --json` printed",
               std::move(actual),
               "hone profile MODEL -p TEXT --json > FILE"};
}

// The element of an array whose members have these values; null if there is none.
const Json* find_row(const Json& array, const char* key, const std::string& value, const std::string& phase) {
  for (const Json& row : array) {
    if (row.value(key, "") == value && (phase.empty() || row.value("phase", "") == phase)) return &row;
  }
  return nullptr;
}

Json number_of(const Json* row, const char* key) {
  if (row == nullptr || !row->contains(key) || !(*row)[key].is_number()) return nullptr;
  return (*row)[key];
}

double share_of(const Json* row) {
  const Json share = number_of(row, "share");
  return share.is_null() ? 0 : share.get<double>();
}

class Comparison {
 public:
  Comparison(const Json& other, const Json& now) : other_(other), now_(now) {}

  std::vector<ComparedNumber> rows;

  void add(std::string name, std::string unit, const Json& other, const Json& now) {
    if (other.is_null() && now.is_null()) return;
    Json ratio = nullptr;
    if (other.is_number() && now.is_number() && other.get<double>() != 0) {
      ratio = now.get<double>() / other.get<double>();
    }
    rows.push_back({std::move(name), std::move(unit), other, now, std::move(ratio), false});
  }

  void add_phase(const std::string& phase) {
    const Json* other = find_row(other_["phases"], "phase", phase, {});
    const Json* now = find_row(now_["phases"], "phase", phase, {});
    constexpr struct {
      const char* key;
      const char* name;
      const char* unit;
    } kNumbers[] = {{"wall_s", "wall time", "s"},
                    {"tokens", "tokens", ""},
                    {"tokens_per_s", "tokens/s", ""},
                    {"launches", "launches", ""},
                    {"average_kernel_s", "average kernel", "s"},
                    {"bytes_read", "bytes read", "bytes"},
                    {"bytes_written", "bytes written", "bytes"},
                    {"waiting", "threads without a tile", "%"},
                    {"utilisation", "utilisation", "%"}};
    for (const auto& number : kNumbers) {
      add(fmt::format("{}: {}", phase, number.name), number.unit, number_of(other, number.key),
          number_of(now, number.key));
    }
  }

  // Rows of this run in their order, then those that only the other one has.
  void add_ops(const std::string& phase) {
    std::vector<std::string> names;
    for (const Json* document : {&now_, &other_}) {
      for (const Json& row : (*document)["ops"]) {
        if (row.value("phase", "") != phase) continue;
        const std::string name = row.value("op", "");
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
      }
    }
    for (const std::string& name : names) {
      const Json* other = find_row(other_["ops"], "op", name, phase);
      const Json* now = find_row(now_["ops"], "op", name, phase);
      const std::size_t first = rows.size();
      add(fmt::format("{}: {}", phase, name), "s", number_of(other, "total_s"), number_of(now, "total_s"));
      add(fmt::format("{}: {} launches", phase, name), "", number_of(other, "launches"),
          number_of(now, "launches"));
      const bool minor = share_of(other) < 0.01 && share_of(now) < 0.01;
      for (std::size_t i = first; i < rows.size(); ++i) rows[i].minor = minor;
    }
  }

  void add_memory(const std::string& region) {
    const Json* other = find_row(other_["memory"], "region", region, {});
    const Json* now = find_row(now_["memory"], "region", region, {});
    add(fmt::format("memory: {} reserved", region), "bytes", number_of(other, "reserved_bytes"),
        number_of(now, "reserved_bytes"));
    add(fmt::format("memory: {} peak in use", region), "bytes", number_of(other, "peak_bytes"),
        number_of(now, "peak_bytes"));
  }

 private:
  const Json& other_;
  const Json& now_;
};

std::string cell(const Json& number, const std::string& unit) {
  if (number.is_null()) return "-";
  const auto value = number.get<double>();
  if (unit == "s")
    return value < 1e-3 ? fmt::format("{:.2f} us", 1e6 * value) : fmt::format("{:.3f} ms", 1e3 * value);
  if (unit == "bytes") return human_bytes(static_cast<std::int64_t>(value));
  if (unit == "%") return fmt::format("{:.1f} %", 100 * value);
  if (number.is_number_integer()) return fmt::format("{}", number.get<std::int64_t>());
  return fmt::format("{:.1f}", value);
}

}  // namespace

Result<Json> read_profile(const std::string& path) {
  const std::string text = HONE_TRY(read_text_file(path));
  Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) return no_profile(path, "no JSON");
  if (!document.is_object()) return no_profile(path, "JSON, but no object");
  if (!document.contains("wall_s") || !document["wall_s"].is_number())
    return no_profile(path, "no number `wall_s`");
  for (const char* name : {"phases", "ops", "memory"}) {
    if (!document.contains(name) || !document[name].is_array())
      return no_profile(path, fmt::format("no array `{}`", name));
    for (const Json& row : document[name]) {
      if (!row.is_object()) return no_profile(path, fmt::format("an element of `{}` is no object", name));
      for (const char* key : {"phase", "op", "region"}) {
        if (row.contains(key) && !row[key].is_string())
          return no_profile(path, fmt::format("`{}` in `{}` is no text", key, name));
      }
    }
  }
  return document;
}

std::vector<ComparedNumber> compare_profiles(const Json& other, const Json& now) {
  Comparison comparison(other, now);
  for (const auto& [key, name, unit] :
       {std::tuple("wall_s", "wall time", "s"), std::tuple("launches", "launches", ""),
        std::tuple("average_kernel_s", "average kernel", "s"),
        std::tuple("bytes_read", "bytes read", "bytes"),
        std::tuple("bytes_written", "bytes written", "bytes"),
        std::tuple("utilisation", "utilisation", "%")}) {
    comparison.add(name, unit, number_of(&other, key), number_of(&now, key));
  }
  for (const char* phase : {"start", "prefill", "decode"}) comparison.add_phase(phase);
  for (const char* phase : {"prefill", "decode"}) comparison.add_ops(phase);
  for (const char* region : {"static", "dynamic", "workspace"}) comparison.add_memory(region);
  return std::move(comparison.rows);
}

Json comparison_json(const std::vector<ComparedNumber>& rows) {
  Json out = Json::array();
  for (const ComparedNumber& row : rows) {
    out.push_back({{"name", row.name},
                   {"unit", row.unit.empty() ? "1" : row.unit},
                   {"other", row.other},
                   {"now", row.now},
                   {"ratio", row.ratio}});
  }
  return out;
}

std::string comparison_text(const std::vector<ComparedNumber>& rows, const Json& other, const Json& now) {
  const auto what = [](const Json& run) {
    std::string out;
    for (const char* key : {"model", "isa", "level", "thread_count", "prompt_tokens"}) {
      if (!run.contains(key)) continue;
      const Json& value = run[key];
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", key,
                         value.is_string() ? value.get<std::string>() : value.dump());
    }
    return out;
  };
  std::size_t width = 0;
  for (const ComparedNumber& row : rows) width = std::max(width, row.name.size());
  std::string out = fmt::format("\nother: {}\nthis:  {}\n{:<{}}{:>16}{:>16}{:>14}\n", what(other), what(now),
                                "", width, "other", "this", "this / other");
  for (const ComparedNumber& row : rows) {
    if (row.minor) continue;
    out += fmt::format("{:<{}}{:>16}{:>16}{:>14}\n", row.name, width, cell(row.other, row.unit),
                       cell(row.now, row.unit),
                       row.ratio.is_null() ? "-" : fmt::format("{:.3f}", row.ratio.get<double>()));
  }
  return out + "ops below 1 % of their phase in both are left out; --json has them\n";
}

}  // namespace hone
