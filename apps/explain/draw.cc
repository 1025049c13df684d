#include "apps/explain/draw.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/explain/dot.h"
#include "apps/explain/escape.h"
#include "graph/text.h"

namespace hone {
namespace {

// A file without a name, in memory.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("hone", MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }

  bool write_all(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = ::write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return lseek(descriptor_, 0, SEEK_SET) == 0;
  }

  std::string read_all() const {
    std::string text;
    std::array<char, 65536> piece{};
    lseek(descriptor_, 0, SEEK_SET);
    while (true) {
      const ssize_t got = ::read(descriptor_, piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return text;
      text.append(piece.data(), static_cast<std::size_t>(got));
    }
  }

 private:
  int descriptor_;
};

Error no_graphviz(std::string reason) {
  return Error{ErrorCode::BadInput,
               Fault::User,
               "--graph",
               "an SVG is drawn by Graphviz, and its program `dot` does not run",
               "`dot` in PATH",
               std::move(reason),
               "apt-get install graphviz; or write the graph as DOT, which needs no Graphviz: --graph=F.dot"};
}

std::string extension(const std::string& path) {
  const std::size_t dot = path.find_last_of("./");
  return dot == std::string::npos || path[dot] != '.' ? std::string() : path.substr(dot);
}

// The exit status of `dot -Tsvg` between these files; an errno in `failed` if it could not be started.
int run_dot(const MemoryFile& in, const MemoryFile& out, const MemoryFile& err, int& failed) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.descriptor(), STDERR_FILENO);
  char program[] = "dot";
  char format[] = "-Tsvg";
  char* arguments[] = {program, format, nullptr};
  pid_t child = 0;
  failed = posix_spawnp(&child, program, &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

Status write_text(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return {};
  return Error{ErrorCode::BadInput, Fault::User, path, "the file cannot be written",
               "a writable path",   {},          {}};
}

Status check_drawing_name(const std::string& path) {
  const std::string end = extension(path);
  if (end == ".ir" || end == ".dot" || end == ".svg") return {};
  return Error{ErrorCode::Usage,
               Fault::User,
               "--graph",
               "the name's ending says what to write, and this one is none that hone knows",
               "F.svg, F.dot or F.ir",
               "'" + path + "'",
               {}};
}

Result<std::string> graphviz_svg(const std::string& dot) {
  const MemoryFile in;
  const MemoryFile out;
  const MemoryFile err;
  if (in.descriptor() < 0 || out.descriptor() < 0 || err.descriptor() < 0 || !in.write_all(dot)) {
    return no_graphviz(std::strerror(errno));
  }
  int failed = 0;
  const int status = run_dot(in, out, err, failed);
  if (failed != 0) return no_graphviz(std::strerror(failed));
  std::string svg = out.read_all();
  if (status == 0 && !svg.empty()) return svg;
  return no_graphviz(fmt::format("exit status {}: {}", status, clipped(clean_text(err.read_all()), 300)));
}

Status draw_graph(const std::string& path, const Graph& graph, const std::vector<NodeRow>& rows) {
  HONE_TRY(check_drawing_name(path));
  const std::string end = extension(path);
  if (end == ".ir") return write_text(path, print_graph(graph));
  const std::string dot = graph_dot(graph, rows);
  return write_text(path, end == ".dot" ? dot : HONE_TRY(graphviz_svg(dot)));
}

}  // namespace hone
