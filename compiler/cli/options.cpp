// The only file that uses the command-line library.
#include <CLI/CLI.hpp>
#include <charconv>
#include <type_traits>

#include "compiler/cli/command.h"

namespace tenon::cli {

struct Options::State {
  CLI::App app;
};

Options::Options(std::string_view command, std::string_view doc) : state_(std::make_unique<State>()) {
  CLI::App& app = state_->app;
  app.name("tenon " + std::string(command));
  app.description(std::string(doc));
  app.set_help_flag("-h,--help", "print this help");
  app.get_formatter()->column_width(34);
}

Options::~Options() = default;

void Options::argument(std::string& variable, std::string_view name, std::string_view doc) {
  state_->app.add_option(std::string(name), variable, std::string(doc))->required()->type_name("");
}

void Options::arguments(std::vector<std::string>& variable, std::string_view name, std::string_view doc) {
  state_->app.add_option(std::string(name), variable, std::string(doc))->required()->type_name("");
}

void Options::required(std::string& variable, std::string_view names, std::string_view value, std::string_view doc) {
  state_->app.add_option(std::string(names), variable, std::string(doc))->required()->type_name(std::string(value));
}

namespace {

template <class T>
void add(CLI::App& app, T& variable, std::string_view names, std::string_view value, std::string_view doc) {
  auto* option = app.add_option(std::string(names), variable, std::string(doc))->type_name(std::string(value));
  if constexpr (std::is_integral_v<T>) {  // the library would use the largest value instead
    option->check([](const std::string& text) {
      T parsed{};
      const auto fault = std::from_chars(text.data(), text.data() + text.size(), parsed).ec;
      return fault == std::errc::result_out_of_range ? text + " is out of range" : std::string();
    });
  }
  if (variable != T{}) option->capture_default_str();
}

}  // namespace

void Options::option(std::string& variable, std::string_view names, std::string_view value, std::string_view doc) {
  add(state_->app, variable, names, value, doc);
}
void Options::option(std::vector<std::string>& variable, std::string_view names, std::string_view value,
                     std::string_view doc) {
  add(state_->app, variable, names, value, doc);
}
void Options::repeated(std::vector<std::string>& variable, std::string_view names, std::string_view value,
                       std::string_view doc) {
  state_->app.add_option(std::string(names), variable, std::string(doc))
      ->type_name(std::string(value))
      ->allow_extra_args(false);
}
void Options::option(int64_t& variable, std::string_view names, std::string_view value, std::string_view doc) {
  add(state_->app, variable, names, value, doc);
}
void Options::option(uint64_t& variable, std::string_view names, std::string_view value, std::string_view doc) {
  add(state_->app, variable, names, value, doc);
}
void Options::option(double& variable, std::string_view names, std::string_view value, std::string_view doc) {
  add(state_->app, variable, names, value, doc);
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

Expected<bool> Options::parse(std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // the library takes the last argument first
  try {
    state_->app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    std::cout << state_->app.help();
    return false;
  } catch (const CLI::ParseError& fault) {
    return error(fault.what(), state_->app.get_name(), state_->app.get_name() + " --help shows the options",
                 Fault::kUsage);
  }
  return true;
}

}  // namespace tenon::cli
