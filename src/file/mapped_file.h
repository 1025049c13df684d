// A regular file mapped read-only. The mapping is what parsers walk; read_at is for weights on their way into
// a packed layout, so that their pages never count as resident memory of this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace hone {

// Contract: the file does not shrink while it is mapped. If it does, touching the lost pages of data() raises
// SIGBUS (as with any mapping); read_at reports it as an Error.
class MappedFile {
 public:
  // Errors (BadFile): missing, not readable, a directory, not a regular file (FIFO, device, socket), empty.
  static Result<std::shared_ptr<MappedFile>> open(const std::string& path);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  std::span<const std::byte> data() const { return {data_, size_}; }

  // Gives the resident pages of [offset, offset + length) back. Only whole pages inside the range are
  // dropped, and what is touched again is read again: a hint, never a change of content.
  void drop(std::uint64_t offset, std::uint64_t length) const;

  // Fills all of `out` from byte `offset`. Errors (BadFile): the range ends behind the file; the read fails;
  // the file has shrunk since it was opened.
  Status read_at(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  MappedFile(std::string path, int descriptor, const std::byte* data, std::uint64_t size);

  std::string path_;
  int descriptor_;
  const std::byte* data_;
  std::uint64_t size_;
};

}  // namespace hone
