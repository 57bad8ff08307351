#pragma once
// Records: what --json writes and `report --from` reads.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rooftile/core/queue.h"
#include "rooftile/harness/bench/machine.h"
#include "rooftile/harness/check/check.h"
#include "rooftile/harness/json_number.h"

namespace rooftile::cli {

/// The words of the command line, as records and reports show them.
void set_command_line(int argc, char** argv);

/// {"schema": 1, "rooftile": version, "commit": …, "date": now, "command": …}, and the same put into a record
/// of the harness.
nlohmann::json new_record();
void stamp(nlohmann::json& record);

/// This machine, not measured, with the ISA that the queue runs.
harness::Machine machine_of(const Queue& queue);

nlohmann::json to_json(const std::vector<harness::CheckResult>& results);

/// A row's number, and its text, or "", where it is missing or null.
using harness::number;
std::string text(const nlohmann::json& row, const char* name);

/// Indented; text that is no UTF-8 is replaced.
std::string dump(const nlohmann::json& json);

/// The record's "results" or "checks", one line each; columns as in JSON, a baseline's time in a column of
/// its own.
std::string results_csv(const nlohmann::json& results);
std::string checks_csv(const nlohmann::json& checks);

/// A file's text ("-": standard input); throws a Failure where it cannot be read or is no record's size.
std::string read_text(const std::string& path);

/// A recorded file ("-": standard input); throws a Failure where it is missing, no JSON, or no record.
nlohmann::json read_record(const std::string& path);

/// One record of several: the first one's machine, everybody's results, checks, pictures and notes.
nlohmann::json merge_records(const std::vector<std::string>& paths);

}  // namespace rooftile::cli
