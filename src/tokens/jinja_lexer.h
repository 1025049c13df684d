// Template text -> tokens. White space control and the trimming of blocks happen here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "tokens/jinja_source.h"

namespace hone::jinja {

struct Token {
  enum class Kind : std::uint8_t {
    Data,           // text: what is printed as it stands
    VariableBegin,  // {{
    VariableEnd,    // }}
    BlockBegin,     // {%
    BlockEnd,       // %}
    Name,
    String,   // text: with escapes resolved
    Integer,  // integer; text: the decimal digits if they are beyond 64 bits
    Float,
    Operator,
    End,
  };
  Kind kind = Kind::End;
  std::uint32_t offset = 0;  // in Source::text()
  std::string text;
  std::int64_t integer = 0;
  double real = 0.0;
};

// The last token is End.
Result<std::vector<Token>> tokenize(const Source& source);

}  // namespace hone::jinja
