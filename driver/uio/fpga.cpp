#include "driver/uio/fpga.h"

#include <fmt/format.h>

#include <system_error>

#include "support/try.h"

namespace tenon::driver::uio {

namespace fs = std::filesystem;

Status load_bitstream(const Files& files, const fs::path& bitstream, bool partial) {
  const std::string manager = "/sys/class/fpga_manager/fpga0/";
  if (!files.exists(manager)) {
    return error("the kernel has no FPGA manager, which loading a bitstream requires", files.path(manager),
                 "load the bitstream by other means (boot loader, xmutil), and omit ?bitstream=");
  }
  std::error_code fault;
  if (!fs::is_regular_file(bitstream, fault)) {
    return error("the bitstream does not exist", bitstream.string(), "use a .bin file of bootgen -process_bitstream");
  }
  const fs::path firmware = files.path("/lib/firmware");
  const fs::path installed = firmware / bitstream.filename();
  if (!fs::exists(installed, fault) || !fs::equivalent(bitstream, installed, fault)) {
    fs::create_directories(firmware, fault);
    fs::copy_file(bitstream, installed, fs::copy_options::overwrite_existing, fault);
    if (fault) {
      return error(fmt::format("cannot copy {}: {}", bitstream.string(), fault.message()), installed.string(),
                   "run as root");
    }
  }
  TENON_TRY(files.write(manager + "flags", partial ? "1" : "0"));
  const Status loaded = files.write(manager + "firmware", bitstream.filename().string());
  TENON_TRY_ASSIGN(state, files.read(manager + "state"));
  if (loaded && *state == "operating") return {};
  return error(fmt::format("the FPGA manager does not accept the bitstream: its state is \"{}\"{}", *state,
                           loaded ? "" : ", " + loaded.error().what),
               bitstream.string(),
               "is it for this FPGA, and converted from .bit to .bin (bootgen -process_bitstream bin)? see the "
               "kernel's log (dmesg)");
}

}  // namespace tenon::driver::uio
