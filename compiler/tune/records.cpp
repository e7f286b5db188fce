#include "compiler/tune/records.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <string_view>
#include <utility>
#include <variant>

#include "support/try.h"

namespace tenon::compiler::tune {
namespace {

constexpr int64_t kApplication = 0x54656e6f;  // "Teno": identifies the files of this program
constexpr int64_t kVersion = 1;
constexpr const char* kSchema = R"(
CREATE TABLE record(operator TEXT, level TEXT, choice TEXT NOT NULL, seconds REAL NOT NULL,
                    default_seconds REAL NOT NULL, PRIMARY KEY(operator, level)) WITHOUT ROWID;
CREATE TABLE trial(operator TEXT, level TEXT, choice TEXT, ratio REAL NOT NULL,
                   PRIMARY KEY(operator, level, choice)) WITHOUT ROWID;
)";

constexpr std::pair<std::string_view, std::string_view> kDotProductTwins[] = {
    {"x86-64-v4+vnni", "x86-64-v4"}, {"x86-64-v3+vnni", "x86-64-v3"}, {"armv8.2-a+dotprod", "armv8-a"}};

}  // namespace

struct Records::State {
  std::string path;
  sqlite3* file = nullptr;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { sqlite3_close(file); }

  std::unexpected<Diagnostic> failed() const {
    const int code = file ? sqlite3_errcode(file) : SQLITE_NOMEM;
    if (code == SQLITE_NOTADB) return error("this is not a file of records", path, "tenon tune writes such files");
    if (code == SQLITE_CORRUPT || code == SQLITE_ERROR)  // the only SQL error is a table with another schema
      return error(fmt::format("the file of records is damaged: {}", sqlite3_errmsg(file)), path,
                   "delete it, and let tenon tune write a new one");
    if (code == SQLITE_CANTOPEN)
      return error("the file of records cannot be opened", path, "its folder must exist and be writable");
    return error(fmt::format("records: {}", file ? sqlite3_errmsg(file) : "out of memory"), path);
  }

  using Field = std::variant<std::string, double>;
  // Runs a statement; calls `row` for each row of its result.
  template <class Row>
  Status each(const char* sql, const std::vector<Field>& fields, const Row& row) const {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(file, sql, -1, &statement, nullptr) != SQLITE_OK) return failed();
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> owner(statement, sqlite3_finalize);
    for (size_t i = 0; i < fields.size(); ++i) {
      const int parameter = static_cast<int>(i) + 1;
      if (const auto* text = std::get_if<std::string>(&fields[i]))
        sqlite3_bind_text(statement, parameter, text->data(), static_cast<int>(text->size()), SQLITE_TRANSIENT);
      else sqlite3_bind_double(statement, parameter, std::get<double>(fields[i]));
    }
    int code = sqlite3_step(statement);
    for (; code == SQLITE_ROW; code = sqlite3_step(statement)) row(statement);
    return code == SQLITE_DONE ? Status() : failed();
  }
  Status run(const char* sql, const std::vector<Field>& fields = {}) const {
    return each(sql, fields, [](sqlite3_stmt*) {});
  }
  Expected<int64_t> number(const char* sql) const {
    int64_t value = 0;
    TENON_TRY(each(sql, {}, [&](sqlite3_stmt* row) { value = sqlite3_column_int64(row, 0); }));
    return value;
  }
  static std::string text(sqlite3_stmt* row, int column) {
    const auto* value = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
    return value ? value : "";
  }

  Status make_tables() const {
    if (sqlite3_exec(file, kSchema, nullptr, nullptr, nullptr) != SQLITE_OK) return failed();
    TENON_TRY(run(fmt::format("PRAGMA application_id = {}", kApplication).c_str()));
    return run(fmt::format("PRAGMA user_version = {}", kVersion).c_str());
  }
  // Checks that the file belongs to this program and is valid; creates the tables of a new one.
  Status check(bool writes) const {
    TENON_TRY_ASSIGN(application, number("PRAGMA application_id"));
    TENON_TRY_ASSIGN(tables, number("SELECT count(*) FROM sqlite_master"));
    if (*application == 0 && *tables == 0) {
      return writes ? make_tables() : error("the file has no records", path, "tenon tune writes records");
    }
    if (*application != kApplication)
      return error("this is a SQLite file of another program", path, "name another file for the records");
    TENON_TRY_ASSIGN(version, number("PRAGMA user_version"));
    if (*version != kVersion)
      return error(fmt::format("the records have version {}, this program reads {}", *version, kVersion), path,
                   "name another file, or delete it and tune again");
    // Views and triggers are code, which runs when a table is read or written; a view may even be infinite.
    TENON_TRY_ASSIGN(others, number("SELECT count(*) FROM sqlite_master WHERE type <> 'table'"));
    if (*others != 0)
      return error("the file of records is damaged: it has views, indices or triggers", path,
                   "delete it, and let tenon tune write a new one");
    return {};
  }
  // Runs `body` as one transaction, which excludes other processes.
  template <class Body>
  Status transaction(const Body& body) const {
    TENON_TRY(run("BEGIN IMMEDIATE"));
    Status status = body();
    if (status) status = run("COMMIT");
    if (!status) sqlite3_exec(file, "ROLLBACK", nullptr, nullptr, nullptr);
    return status;
  }
};

Records::Records(std::unique_ptr<State> state) : state_(std::move(state)) {}
Records::Records(Records&&) noexcept = default;
Records& Records::operator=(Records&&) noexcept = default;
Records::~Records() = default;

Expected<Records> Records::open(const std::filesystem::path& path, bool writes) {
  auto state = std::make_unique<State>();
  state->path = path.string();
  std::error_code ignored;
  if (!writes && !std::filesystem::exists(path, ignored))
    return error("the file of records does not exist", path.string(), "tenon tune MODEL --records FILE writes one");
  if (std::filesystem::is_directory(path, ignored)) return error("this is a directory", path.string());
  const int flags = writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  if (sqlite3_open_v2(path.c_str(), &state->file, flags, nullptr) != SQLITE_OK) return state->failed();
  sqlite3_extended_result_codes(state->file, 0);
  sqlite3_busy_timeout(state->file, 20000);
  TENON_TRY(writes ? state->transaction([&] { return state->check(true); }) : state->check(false));
  return Records(std::move(state));
}
Expected<Records> Records::open(const std::filesystem::path& path) { return open(path, true); }
Expected<Records> Records::open_to_read(const std::filesystem::path& path) { return open(path, false); }

Expected<std::optional<Record>> Records::find(const std::string& key, const std::string& level) const {
  std::optional<Record> record;
  TENON_TRY(state_->each("SELECT choice, seconds, default_seconds FROM record WHERE operator = ? AND level = ?",
                         {key, level}, [&](sqlite3_stmt* row) {
                           record = {kernels::parse_knob_settings(State::text(row, 0)), sqlite3_column_double(row, 1),
                                     sqlite3_column_double(row, 2)};
                         }));
  return record;
}

Expected<std::vector<Trial>> Records::trials(const std::string& key, const std::string& level) const {
  std::vector<Trial> trials;
  TENON_TRY(state_->each(
      "SELECT choice, ratio FROM trial WHERE operator = ? AND level = ? ORDER BY ratio, choice", {key, level},
      [&](sqlite3_stmt* row) {
        trials.push_back({kernels::parse_knob_settings(State::text(row, 0)), sqlite3_column_double(row, 1)});
      }));
  return trials;
}

Status Records::put(const std::string& key, const std::string& level, const Record& record,
                    const std::vector<Trial>& trials) {
  return state_->transaction([&]() -> Status {
    TENON_TRY(state_->run("INSERT OR REPLACE INTO record VALUES(?, ?, ?, ?, ?)",
                          {key, level, kernels::str(record.settings), record.seconds, record.default_seconds}));
    for (const Trial& trial : trials) {
      TENON_TRY(state_->run("INSERT OR REPLACE INTO trial VALUES(?, ?, ?, ?)",
                            {key, level, kernels::str(trial.settings), trial.ratio}));
    }
    return {};
  });
}

Expected<std::map<std::string, kernels::KnobSettings>> Records::best(const std::vector<std::string>& levels) const {
  std::map<std::string, kernels::KnobSettings> best;
  for (const std::string& level : levels) {
    TENON_TRY(state_->each("SELECT operator, choice FROM record WHERE level = ?", {level}, [&](sqlite3_stmt* row) {
      best.try_emplace(State::text(row, 0), kernels::parse_knob_settings(State::text(row, 1)));
    }));
  }
  return best;
}

Expected<kernels::KnobLookup> read_knobs(const std::filesystem::path& path, const std::vector<std::string>& levels) {
  TENON_TRY_ASSIGN(records, Records::open_to_read(path));
  TENON_TRY_ASSIGN(best, records->best(levels));
  return kernels::KnobLookup([best = std::move(*best)](const std::string& key) {
    const auto found = best.find(key);
    return found == best.end() ? kernels::KnobSettings() : found->second;
  });
}

Expected<kernels::KnobLookup> read_level_knobs(const std::filesystem::path& path, const std::string& level) {
  std::vector<std::string> levels{level};
  for (const auto& [with_dots, without_dots] : kDotProductTwins) {
    if (level == with_dots) levels.emplace_back(without_dots);
    if (level == without_dots) levels.emplace_back(with_dots);
  }
  return read_knobs(path, levels);
}

}  // namespace tenon::compiler::tune
