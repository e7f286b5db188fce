#include "compiler/train/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "support/file.h"
#include "support/printable.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

struct Curve {
  std::string name;
  std::vector<std::pair<int64_t, double>> points;  // epoch, value
};

// In units of the picture.
constexpr double kWidth = 640, kHeight = 220, kLeft = 70, kRight = 12, kTop = 12, kBottom = 28;

// The values from `low` to `high` as the picture has them, between the bottom and the top.
double scaled(double value, double low, double high, double from, double to) {
  return high > low ? from + (value - low) / (high - low) * (to - from) : (from + to) / 2;
}

std::string picture(const Curve& curve) {
  const auto [least, most] = std::ranges::minmax_element(curve.points, {}, &std::pair<int64_t, double>::second);
  const double low = least->second, high = most->second;
  const auto first = static_cast<double>(curve.points.front().first),
             last = static_cast<double>(curve.points.back().first);
  std::string path, dots;
  for (const auto& [epoch, value] : curve.points) {
    const double x = scaled(static_cast<double>(epoch), first, last, kLeft, kWidth - kRight),
                 y = scaled(value, low, high, kHeight - kBottom, kTop);
    path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", x, y);
    dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>epoch {}: {:.6g}</title></circle>\n", x, y,
                        epoch, value);
  }
  const auto label = [](double x, double y, std::string_view anchor, const std::string& text) {
    return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, text);
  };
  std::string labels = label(kLeft - 8, kTop + 4, "end", fmt::format("{:.4g}", high));
  if (high > low) labels += label(kLeft - 8, kHeight - kBottom + 4, "end", fmt::format("{:.4g}", low));
  labels += label(kLeft, kHeight - 8, "middle", fmt::format("{}", first));
  if (last > first) labels += label(kWidth - kRight, kHeight - 8, "end", fmt::format("epoch {}", last));
  return fmt::format(
      "<h2>{}</h2>\n<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n"
      "<path class=\"axis\" d=\"M{} {}V{}H{}\"/>\n<polyline points=\"{}\"/>\n{}{}</svg>\n",
      curve.name, kWidth, kHeight, curve.name, kLeft, kTop, kHeight - kBottom, kWidth - kRight, path, dots, labels);
}

}  // namespace

Expected<std::vector<EpochMetrics>> read_metrics(const std::string& path) {
  std::vector<EpochMetrics> epochs;
  if (!std::filesystem::exists(path)) return epochs;
  TENON_TRY_ASSIGN(text, read_text(path));
  std::string_view remaining = *text;
  for (int64_t line = 1; !remaining.empty(); ++line) {
    const std::string_view content = remaining.substr(0, remaining.find('\n'));
    remaining.remove_prefix(std::min(remaining.size(), content.size() + 1));
    if (content.empty()) continue;
    const auto json = nlohmann::json::parse(content, nullptr, false);
    const auto number = [&](const char* name) {
      return json.is_object() && json.contains(name) && json[name].is_number();
    };
    if (!number("epoch") || !json["epoch"].is_number_integer() || !number("loss") || !number("rate") ||
        !number("seconds")) {
      return error("the line is not one of the metrics of tenon train: epoch, loss, rate and seconds",
                   fmt::format("{}:{}", path, line), "give another file, or remove it");
    }
    EpochMetrics epoch{json["epoch"], json["loss"], {}, json["rate"], json["seconds"]};
    if (number("accuracy")) epoch.accuracy = json["accuracy"].get<double>();
    epochs.push_back(epoch);
  }
  return epochs;
}

std::string curves_page(const std::string& title, const std::vector<std::pair<std::string, std::string>>& facts,
                        const std::vector<EpochMetrics>& epochs) {
  Curve loss{"Loss", {}}, accuracy{"Accuracy of held-out samples, %", {}}, rate{"Learning rate", {}};
  std::string rows, list, pictures;
  for (const EpochMetrics& epoch : epochs) {
    loss.points.emplace_back(epoch.epoch, epoch.loss);
    rate.points.emplace_back(epoch.epoch, epoch.rate);
    if (epoch.accuracy) accuracy.points.emplace_back(epoch.epoch, *epoch.accuracy);
    rows += fmt::format("<tr><td>{}</td><td>{:.6g}</td><td>{}</td><td>{:.4g}</td><td>{:.1f}</td></tr>\n", epoch.epoch,
                        epoch.loss, epoch.accuracy ? fmt::format("{:.2f}", *epoch.accuracy) : "", epoch.rate,
                        epoch.seconds);
  }
  for (const auto& [name, value] : facts)
    list += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", html_text(name), html_text(value));
  for (const Curve& curve : {loss, accuracy, rate})
    if (!curve.points.empty()) pictures += picture(curve);
  return fmt::format(R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{0}</title><style>
body {{ font: 14px sans-serif; margin: 2em; max-width: 760px }} h2 {{ font-size: 15px; margin: 1.5em 0 0.3em }}
td, th {{ padding: 2px 10px; text-align: right }} td:first-child, th:first-child {{ text-align: left }}
svg {{ width: 100% }} polyline {{ fill: none; stroke: #2a6fc9; stroke-width: 2 }} circle {{ fill: #2a6fc9 }}
.axis {{ fill: none; stroke: #8a8881 }} text {{ font: 12px sans-serif; fill: #55544f }}
</style></head><body><h1>{0}</h1>
<table>
{1}</table>
{2}<h2>Epochs</h2>
<table><tr><th>epoch</th><th>loss</th><th>accuracy, %</th><th>rate</th><th>seconds</th></tr>
{3}</table></body></html>
)",
                     html_text(title), list, pictures, rows);
}

}  // namespace tenon::compiler
