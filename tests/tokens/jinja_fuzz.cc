// Any bytes as a template: it renders or gives an error, within its fuel.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tokens/exact_json.h"
#include "tokens/jinja.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto context =
      hone::parse_exact_json(
          R"({"messages": [{"role": "user", "content": "hi \u00e9"}, {"role": "tool", "content": null}], "x": {"y": 1},
          "d": {"b": 1, "a": 2, "items": "shadow"}, "add_generation_prompt": true, "xs": [0, 1, 2.5, "s"], "b": 1,
          "rows": [{"n": 1, "s": "one", "ok": true}, {"n": 2, "s": "Two", "ok": false}, {"n": 3, "s": "one", "ok": true}],
          "t": [{"v": 1, "c": [{"v": 2}]}], "tree": [{"v": 1, "c": [{"v": 2}]}], "s": "  a b \n", "vs": [0, "", [], null],
          "big": 123456789012345678901234567890, "tools": [{"type": "function", "function": {"name": "f", "parameters":
          {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}}}}], "m": {"role": "user"}})",
          "context")
          .value();
  const hone::Fuel fuel{.steps = 50'000,
                        .depth = 32,
                        .output_bytes = 1 << 16,
                        .memory_bytes = 8 << 20,
                        .source_bytes = 1 << 16,
                        .now = 1'719'835'445};
  const auto result = hone::render_template({reinterpret_cast<const char*>(data), size}, context, fuel);
  if (!result.ok() && result.error().code != hone::ErrorCode::BadInput) std::abort();
  return 0;
}
