// Names come out of files that anyone may have written. What each kind of document takes of them.
#pragma once

#include <string>
#include <string_view>

namespace hone {

// Valid UTF-8 without control characters: each byte that is not becomes U+FFFD.
std::string clean_text(std::string_view text);

// Text of an HTML document, outside and inside of quotes.
std::string html_text(std::string_view text);

// A JSON document that stands in a <script> element: no '<' is left that could end it.
std::string script_json(std::string_view json);

// Text between the quotes of a DOT label, where Graphviz reads backslashes and HTML entities. `line_end`:
// "\\n" puts the line before it into the middle, "\\l" to the left.
std::string dot_text(std::string_view text, std::string_view line_end = "\\n");

// `text`, or its first `width` - 2 characters and "..".
std::string clipped(std::string_view text, std::size_t width);

}  // namespace hone
