// A file that appears under its name only when it is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace hone {

// Writes to "PATH.partial" and renames it in commit(); destroyed without commit, it removes the partial file.
// A path that exists and is not a regular file (a device, a pipe) is written directly.
class OutputFile {
 public:
  // Errors (BadFile): cannot be created; a directory.
  static Result<std::unique_ptr<OutputFile>> create(const std::string& path);

  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Errors (BadFile): the write fails (disk full).
  Status append(std::span<const std::byte> bytes);
  Status commit();

  std::uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  OutputFile(std::string path, std::string partial, int descriptor);

  std::string path_;
  std::string partial_;  // empty: written directly
  int descriptor_;
  std::uint64_t size_ = 0;
};

}  // namespace hone
