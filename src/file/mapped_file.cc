#include "file/mapped_file.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "file/file_error.h"

namespace hone {
namespace {

Error not_regular(const std::string& path, const char* kind) {
  return Error{ErrorCode::BadFile,
               Fault::User,
               path,
               "a checkpoint must be a regular file",
               "a regular file",
               kind,
               "give the path of the model file"};
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

Result<std::shared_ptr<MappedFile>> MappedFile::open(const std::string& path) {
  // The kind is asked for before the file is opened: opening a device can have effects of its own.
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    return system_error(path, "the file must exist and be readable", errno,
                        "check the path and its permissions");
  }
  if (!S_ISREG(info.st_mode)) return not_regular(path, kind_of(info.st_mode));
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) {
    return system_error(path, "the file must exist and be readable", errno,
                        "check the path and its permissions");
  }
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor);
    return not_regular(path, kind_of(info.st_mode));
  }
  if (info.st_size == 0) {
    ::close(descriptor);
    return bad_file_at(path, 0, "a checkpoint must not be empty", "a header", "0 bytes",
                       "download the file again");
  }
  const auto size = static_cast<std::uint64_t>(info.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (data == MAP_FAILED) {
    const int number = errno;
    ::close(descriptor);
    return system_error(path, "the file must be mappable into memory", number,
                        "raise the limit of ulimit -v");
  }
  return std::shared_ptr<MappedFile>(
      new MappedFile(path, descriptor, static_cast<const std::byte*>(data), size));
}

MappedFile::MappedFile(std::string path, int descriptor, const std::byte* data, std::uint64_t size)
    : path_(std::move(path)), descriptor_(descriptor), data_(data), size_(size) {}

MappedFile::~MappedFile() {
  ::munmap(const_cast<std::byte*>(data_), size_);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  ::close(descriptor_);
}

void MappedFile::drop(std::uint64_t offset, std::uint64_t length) const {
  if (offset >= size_) return;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const bool to_end = length >= size_ - offset;
  const std::uint64_t begin = (offset + page - 1) / page * page;
  // The last page of the file is whole as far as the mapping goes.
  const std::uint64_t end = to_end ? size_ : (offset + length) / page * page;
  if (begin >= end) return;
  ::madvise(const_cast<std::byte*>(data_) + begin,
            end - begin,  // NOLINT(cppcoreguidelines-pro-type-const-cast)
            MADV_DONTNEED);
}

Status MappedFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > size_ || out.size() > size_ - offset) {
    return bad_file_at(path_, offset, "a read must end inside the file", fmt::format("{} bytes", out.size()),
                       fmt::format("{} bytes left", offset > size_ ? 0 : size_ - offset));
  }
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got =
        ::pread(descriptor_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (got > 0) {
      done += static_cast<std::size_t>(got);
    } else if (got == 0) {
      return bad_file_at(path_, offset + done, "the file must not shrink while it is in use",
                         fmt::format("{} bytes", out.size() - done), "end of file",
                         "leave the file alone while hone runs; write a new one and rename it");
    } else if (errno != EINTR) {
      return system_error(path_, fmt::format("the file must be readable at byte {}", offset + done), errno,
                          "check the disk");
    }
  }
  return {};
}

}  // namespace hone
