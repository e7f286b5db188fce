// The report's page, style and script, compiled in from the files of these names in this folder, so that a board needs
// no data directory.
#pragma once

#include <string_view>

namespace tenon::runtime {

extern const std::string_view kReportHtml, kReportCss, kReportJs;

}  // namespace tenon::runtime
