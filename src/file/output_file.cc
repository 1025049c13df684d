#include "file/output_file.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "file/file_error.h"

namespace hone {

Result<std::unique_ptr<OutputFile>> OutputFile::create(const std::string& path) {
  struct stat info{};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  const bool direct = exists && !S_ISREG(info.st_mode);
  const std::string partial = direct ? std::string() : path + ".partial";
  const std::string& target = direct ? path : partial;
  const int flags = O_WRONLY | O_CLOEXEC | (direct ? 0 : O_CREAT | O_TRUNC);
  const int descriptor = ::open(target.c_str(), flags, 0666);
  if (descriptor < 0) {
    return system_error(target, "the output file must be writable", errno,
                        "check the folder, its permissions and space");
  }
  return std::unique_ptr<OutputFile>(new OutputFile(path, partial, descriptor));
}

OutputFile::OutputFile(std::string path, std::string partial, int descriptor)
    : path_(std::move(path)), partial_(std::move(partial)), descriptor_(descriptor) {}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (!partial_.empty()) ::unlink(partial_.c_str());
}

Status OutputFile::append(std::span<const std::byte> bytes) {
  if (descriptor_ < 0) return internal_error(path_, "nothing may be appended to a committed file");
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return system_error(path_, "the output must be written in full", errno, "free space on the disk");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    size_ += static_cast<std::uint64_t>(written);
  }
  return {};
}

Status OutputFile::commit() {
  if (descriptor_ < 0) return internal_error(path_, "a file is committed once");
  const int closed = ::close(std::exchange(descriptor_, -1));
  if (closed != 0) {
    const int number = errno;
    if (!partial_.empty()) ::unlink(partial_.c_str());
    return system_error(path_, "the output must be written in full", number, "free space on the disk");
  }
  if (!partial_.empty() && std::rename(partial_.c_str(), path_.c_str()) != 0) {
    const int number = errno;
    ::unlink(partial_.c_str());
    return system_error(path_, "the finished file must be renamed to its name", number,
                        "check the folder's permissions");
  }
  return {};
}

}  // namespace hone
