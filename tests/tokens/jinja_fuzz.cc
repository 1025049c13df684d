// Any bytes as a template: it renders or gives an error, within its fuel.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tokens/jinja.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto context = nlohmann::ordered_json::parse(
      R"({"messages": [{"role": "user", "content": "hi \u00e9"}, {"role": "tool", "content": null}], "x": [1, 2.5, "s"],
          "d": {"a": 1, "items": 2}, "add_generation_prompt": true})");
  const hone::Fuel fuel{.steps = 100'000, .depth = 32, .output_bytes = 1 << 16, .source_bytes = 1 << 16};
  const auto result = hone::render_template({reinterpret_cast<const char*>(data), size}, context, fuel);
  if (!result.ok() && result.error().code != hone::ErrorCode::BadInput) std::abort();
  return 0;
}
