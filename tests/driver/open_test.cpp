// Opening devices by URI: errors that list the alternatives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "driver/accelerator.h"
#include "sim/simulator.h"

namespace tenon::driver {
namespace {

using testing::HasSubstr;

TEST(Open, AnUnknownSchemeListsTheAvailableSchemes) {
  const auto device = open("nosuch:default");
  ASSERT_FALSE(device);
  EXPECT_THAT(device.error().str(),
              HasSubstr("nosuch:default: error: unknown device scheme \"nosuch\"\n  help: expected one of "));
  for (const Transport& transport : transports()) EXPECT_THAT(device.error().help, HasSubstr(transport.scheme + ":"));
}

TEST(Open, AUriWithoutSchemeIsExplained) {
  const auto device = open("default");
  ASSERT_FALSE(device);
  EXPECT_THAT(device.error().what, HasSubstr("\"default\" is not a device URI: it has no scheme"));
}

TEST(Open, TheBehavioralSimulatorIsLinkedIn) {
  const auto device = open("behavioral:tiny?memory=1M&race=off&latency=200&write_latency=180&outstanding=8");
  ASSERT_TRUE(device) << device.error().str();
  EXPECT_EQ((*device)->info().config.name, "tiny");
  EXPECT_TRUE((*device)->info().simulated);
  EXPECT_FALSE((*device)->info().cycle_accurate);
  EXPECT_EQ((*device)->simulator()->memory().size(), 1u << 20);
  EXPECT_EQ((*device)->info().memory, (spec::MemoryTiming{200, 180, 8}));
}

TEST(Open, AnUnknownConfigurationListsTheNamedConfigurations) {
  const auto device = open("behavioral:nosuch");
  ASSERT_FALSE(device);
  EXPECT_THAT(device.error().str(), HasSubstr("no configuration is called \"nosuch\""));
  EXPECT_THAT(device.error().help, HasSubstr("default, "));
}

TEST(Open, AnUnknownOptionListsTheSupportedOptions) {
  const auto device = open("behavioral:tiny?rase=off");
  ASSERT_FALSE(device);
  EXPECT_THAT(device.error().str(), HasSubstr("there is no option rase\n  help: expected one of memory, race, kernels, "
                                              "latency, write_latency, outstanding"));
}

TEST(Open, AFileThatIsNotALibraryIsAnErrorOfItsScheme) {
  const auto directory = std::filesystem::temp_directory_path() / "tenon-open-test";
  std::filesystem::create_directories(directory);
  std::ofstream(directory / "tenon-driver-broken.so") << "not a library";
  ASSERT_EQ(setenv("TENON_DRIVER_PATH", directory.c_str(), 1), 0);
  const auto device = open("broken:x");
  unsetenv("TENON_DRIVER_PATH");
  std::filesystem::remove_all(directory);
  ASSERT_FALSE(device);
  EXPECT_THAT(device.error().str(), HasSubstr("tenon-driver-broken.so cannot be opened"));
}

}  // namespace
}  // namespace tenon::driver
