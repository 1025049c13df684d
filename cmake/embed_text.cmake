# cmake -DOUT=F.cc -DHEADER=a/b.h -DNAMES="kA;kB" -DFILES="a.html;b.css" -P cmake/embed_text.cmake
# Writes a source that defines hone::kA, hone::kB .. as the text of the files; HEADER declares them.
set(source "// Made by cmake/embed_text.cmake.\n#include \"${HEADER}\"\n\nnamespace hone {\n")
foreach(name file IN ZIP_LISTS NAMES FILES)
  file(READ "${file}" text)
  string(APPEND source "\nconst std::string_view ${name} = R\"~~~(${text})~~~\";\n")
endforeach()
file(WRITE "${OUT}" "${source}\n}  // namespace hone\n")
