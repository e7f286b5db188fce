// The only file that uses the command-line library.
#include "support/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "support/output.h"
#include "support/printable.h"
#include "support/suggest.h"

namespace tenon {

struct Options::State {
  CLI::App app;
};

Options::Options(std::string_view program, std::string_view doc) : state_(std::make_unique<State>()) {
  CLI::App& app = state_->app;
  app.name(std::string(program));
  app.description(std::string(doc));
  app.set_help_flag("-h,--help", "print this help");
  app.get_formatter()->column_width(34);
  app.allow_extras();  // parse() reports them
}

Options::~Options() = default;

void Options::argument(std::string& variable, std::string_view name, std::string_view doc) {
  state_->app.add_option(std::string(name), variable, std::string(doc))->required()->type_name("");
}

void Options::optional_argument(std::string& variable, std::string_view name, std::string_view doc) {
  state_->app.add_option(std::string(name), variable, std::string(doc))->type_name("");
}

void Options::arguments(std::vector<std::string>& variable, std::string_view name, std::string_view doc) {
  state_->app.add_option(std::string(name), variable, std::string(doc))->required()->type_name("");
}

void Options::required(std::string& variable, std::string_view names, std::string_view value, std::string_view doc) {
  state_->app.add_option(std::string(names), variable, std::string(doc))->required()->type_name(std::string(value));
}

namespace {

template <class T>
void add_text(CLI::App& app, T& variable, std::string_view names, std::string_view value, std::string_view doc) {
  auto* option = app.add_option(std::string(names), variable, std::string(doc))->type_name(std::string(value));
  if (variable != T{}) option->capture_default_str();
}

template <class T>
void add_number(CLI::App& app, T& variable, std::string_view names, std::string_view value, std::string_view doc,
                const Bounds<T>& bounds) {
  const std::string name(names.substr(names.rfind(',') + 1));
  const auto read = [&variable, name, bounds](const std::string& text) {
    const auto number = read_number(name, text, bounds);
    if (!number) throw CLI::ValidationError(number.error().what);
    variable = *number;
  };
  auto* option =
      app.add_option_function<std::string>(std::string(names), read, std::string(doc))->type_name(std::string(value));
  if (variable != T{}) option->default_str(fmt::format("{}", variable));
}

// The error of arguments that are neither options nor expected ones, in their order; nothing where there are none.
Status check_extras(const CLI::App& app, bool unknown_options_only) {
  std::vector<std::string> extras;
  for (const std::string& extra : app.remaining()) {
    if (extra == "--") continue;  // which the library keeps; arguments follow it
    const bool is_option = extra.size() > 1 && extra.starts_with('-');
    if (!is_option) {
      extras.push_back(fmt::format("'{}'", printable(extra)));
      continue;
    }
    const std::string name = extra.substr(0, extra.find('='));
    std::vector<std::string_view> known;
    for (const CLI::Option* option : app.get_options())
      for (const std::string& one : option->get_lnames()) known.push_back(one);
    std::string help = suggest(std::string_view(name).substr(name.find_first_not_of('-')), known, "--");
    if (help.empty()) help = app.get_name() + " --help shows the options";
    else help += " " + app.get_name() + " --help shows the options";
    return error(fmt::format("there is no option {}", printable(name)), app.get_name(), std::move(help), Fault::kUsage);
  }
  if (extras.empty() || unknown_options_only) return {};
  return error(fmt::format("unexpected argument{} {}", extras.size() == 1 ? "" : "s", fmt::join(extras, ", ")),
               app.get_name(), app.get_name() + " --help shows the options", Fault::kUsage);
}

}  // namespace

void Options::option(std::string& variable, std::string_view names, std::string_view value, std::string_view doc) {
  add_text(state_->app, variable, names, value, doc);
}
void Options::option(std::vector<std::string>& variable, std::string_view names, std::string_view value,
                     std::string_view doc) {
  add_text(state_->app, variable, names, value, doc);
}
void Options::repeated(std::vector<std::string>& variable, std::string_view names, std::string_view value,
                       std::string_view doc) {
  state_->app.add_option(std::string(names), variable, std::string(doc))
      ->type_name(std::string(value))
      ->allow_extra_args(false);
}
void Options::option(int64_t& variable, std::string_view names, std::string_view value, std::string_view doc,
                     Bounds<int64_t> bounds) {
  add_number(state_->app, variable, names, value, doc, bounds);
}
void Options::option(uint64_t& variable, std::string_view names, std::string_view value, std::string_view doc,
                     Bounds<uint64_t> bounds) {
  add_number(state_->app, variable, names, value, doc, bounds);
}
void Options::option(double& variable, std::string_view names, std::string_view value, std::string_view doc,
                     Bounds<double> bounds) {
  add_number(state_->app, variable, names, value, doc, bounds);
}

void Options::choice(std::string& variable, std::string_view names, std::vector<std::string> values,
                     std::string_view doc) {
  state_->app.add_option(std::string(names), variable, std::string(doc))
      ->check(CLI::IsMember(std::move(values)))
      ->type_name("")
      ->capture_default_str();
}

void Options::flag(bool& variable, std::string_view names, std::string_view doc) {
  state_->app.add_flag(std::string(names), variable, std::string(doc));
}

void Options::footer(std::string_view text) { state_->app.footer(std::string(text)); }

void Options::version(std::string_view text) { state_->app.set_version_flag("--version", std::string(text)); }

Expected<bool> Options::parse(std::vector<std::string> arguments) {
  const CLI::App& app = state_->app;
  std::reverse(arguments.begin(), arguments.end());  // the library takes the last argument first
  try {
    state_->app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    write_stdout(app.help());
    return false;
  } catch (const CLI::CallForVersion& version) {
    print_stdout("{}\n", version.what());
    return false;
  } catch (const CLI::ParseError& fault) {
    // A misspelled option leaves its value over, or lets another one be missing.
    if (Status extras = check_extras(app, true); !extras) return std::unexpected(std::move(extras.error()));
    return error(fault.what(), app.get_name(), app.get_name() + " --help shows the options", Fault::kUsage);
  }
  if (Status extras = check_extras(app, false); !extras) return std::unexpected(std::move(extras.error()));
  return true;
}

}  // namespace tenon
