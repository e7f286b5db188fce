// The files of modules: the text with its side file in the same folder, or the binary form, by the file's extension.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <span>

#include "compiler/ir/text.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

// The name of the side file in the first line; empty where the line has none. The parser checks the line later.
std::string side_name(std::string_view text) {
  const std::string_view first = text.substr(0, text.find(']'));
  constexpr std::string_view kKey = "side = \"";
  const size_t at = first.find(kKey);
  if (at == std::string_view::npos) return "";
  const std::string_view name = first.substr(at + kKey.size());
  return std::string(name.substr(0, name.find('"')));
}

}  // namespace

Status save(const Context& context, const Module& module, const std::filesystem::path& path,
            const PrintOptions& options) {
  if (path.extension() == ".tnb") return write_file(path, to_binary(context, module));
  PrintOptions named = options;
  const std::filesystem::path side = std::filesystem::path(path).replace_extension(".npz");
  named.side = side.filename().string();
  const Text text = print(context, module, named);
  if (!text.side.empty()) TENON_TRY(write_file(side, text.side));
  return write_file(path, text.text);
}

namespace {

// Reads a file and those that it imports, each once.
class Loader {
 public:
  Loader(Context& context, const InferOptions& options) : context_(context), options_(options) {}

  Expected<Module> load(const std::filesystem::path& path) {
    TENON_TRY_ASSIGN(text, read_file(path));
    return load(path, *text);
  }

 private:
  Expected<Module> load(const std::filesystem::path& path, std::span<const std::byte> text) {
    if (path.extension() == ".tnb") return from_binary(context_, text, path.string());
    const std::string_view view(reinterpret_cast<const char*>(text.data()), text.size());
    const std::string name = side_name(view);
    std::vector<std::byte> side;
    if (!name.empty()) {
      if (name.find('/') != std::string::npos) {
        return error(fmt::format("the side file \"{}\" is in another folder", name), path.string(),
                     "it must be in the folder of the text, and the first line must have its name without a directory");
      }
      TENON_TRY_ASSIGN(bytes, read_regular_file(path.parent_path() / name));
      side = std::move(*bytes);
    }
    return parse(context_, view, side, path.string(), options_,
                 [&](const std::string& imported) { return import(path.parent_path() / imported); });
  }

  Expected<const Module*> import(const std::filesystem::path& path) {
    std::error_code failure;
    const std::filesystem::path file = std::filesystem::weakly_canonical(path, failure);
    if (failure) return error(fmt::format("{}: {}", path.string(), failure.message()));
    const auto [found, is_new] = modules_.try_emplace(file);
    if (!is_new && !found->second) return error(fmt::format("{} imports itself, through other modules", path.string()));
    if (is_new) {
      TENON_TRY_ASSIGN(text, read_regular_file(path));
      TENON_TRY_ASSIGN(module, load(path, *text));
      found->second = std::make_unique<Module>(std::move(*module));
    }
    return found->second.get();
  }

  Context& context_;
  const InferOptions& options_;
  std::map<std::filesystem::path, std::unique_ptr<Module>> modules_;  // null: its imports are being read
};

}  // namespace

Expected<Module> load(Context& context, const std::filesystem::path& path, const InferOptions& options) {
  return Loader(context, options).load(path);
}

}  // namespace tenon::compiler
