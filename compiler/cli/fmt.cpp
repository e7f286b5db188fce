// tenon fmt: the one layout for modules in the text form. tenon convert: modules between their files.
#include <fmt/format.h>

#include <iostream>
#include <iterator>

#include "compiler/cli/command.h"
#include "compiler/frontend/onnx.h"
#include "compiler/ir/text.h"
#include "compiler/ir/text/format.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

struct FormatCommand {
  std::vector<std::string> files;
  bool write = false, check = false;

  Status run() const {
    if (write && check) return error("--write and --check exclude each other", {}, "give one of them", Fault::kUsage);
    std::string different;
    for (const std::string& file : files) {
      TENON_TRY_ASSIGN(text, read(file));
      TENON_TRY_ASSIGN(formatted, compiler::format(*text, file == "-" ? "standard input" : file));
      if (check) {
        if (*formatted != *text) different += (different.empty() ? "" : ", ") + file;
      } else if (write && file != "-") {
        if (*formatted == *text) continue;
        TENON_TRY(write_file(file, *formatted));
        print_stdout("{}\n", file);
      } else {
        print_stdout("{}", *formatted);
      }
    }
    if (different.empty()) return {};
    return error("not formatted: " + different, {}, "tenon fmt -w formats them in place");
  }

  static Expected<std::string> read(const std::string& file) {
    if (file == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
    return read_text(file);
  }
};

struct ConvertCommand {
  std::string input, output;

  Status run() const {
    if (!output.ends_with(".tn") && !output.ends_with(".tnb")) {
      return error("a module is written as .tn or .tnb", output, {}, Fault::kUsage);
    }
    compiler::Context context;
    TENON_TRY_ASSIGN(
        module, input.ends_with(".onnx") ? compiler::load_onnx(context, input, {}) : compiler::load(context, input));
    return compiler::save(context, *module, output);
  }
};

}  // namespace

Action convert(Options& options) {
  auto command = std::make_shared<ConvertCommand>();
  options.argument(command->input, "FILE", "a module: .tn with its side file, .tnb or .onnx");
  options.required(command->output, "-o,--output", "FILE",
                   ".tn: text, and the larger constants in an .npz beside it; .tnb: both in one deflated file");
  options.footer("tenon convert model.onnx -o model.tn");
  return [command] { return command->run(); };
}

Action format_text(Options& options) {
  auto command = std::make_shared<FormatCommand>();
  options.arguments(command->files, "FILE", "modules in the text form (.tn); - for standard input");
  options.flag(command->write, "-w,--write", "write into the files, and print the names of changed files");
  options.flag(command->check, "--check", "print nothing; exit code 1 and their names where files are not formatted");
  options.footer("tenon fmt model.tn prints the formatted text, tenon fmt -w *.tn formats in place.");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
