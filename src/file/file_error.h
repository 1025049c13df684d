// What the readers of src/file share: errors that name a byte, and text of foreign files made safe to print.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hone {

// A broken rule of a file format at byte `offset`; `where` becomes "PATH, byte OFFSET".
Error bad_file_at(std::string_view path, std::uint64_t offset, std::string message, std::string expected,
                  std::string actual, std::string next_step = "download the file again, or convert it again");

// A file that the system does not let us use; `number` is errno.
Error system_error(std::string_view path, std::string message, int number, std::string next_step = {});

// What to do with a PyTorch checkpoint.
inline constexpr std::string_view kFromPickle =
    "load it in PyTorch and save it with safetensors.torch.save_file, or convert the model with llama.cpp's "
    "convert_hf_to_gguf.py";

// `text` in quotes, cut after 60 bytes, with everything that is not printable ASCII as \xNN.
std::string printable(std::string_view text);

// Names of tensors and keys: not empty, well-formed UTF-8 (Unicode, table 3-7), no control characters.
bool is_usable_name(std::string_view text);

}  // namespace hone
