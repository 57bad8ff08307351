#include "rooftile/harness/bench/python_baselines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "rooftile/core/signature.h"
#include "rooftile/harness/bench/timing.h"

extern char** environ;

namespace rooftile::harness {
namespace {

using nlohmann::json;

constexpr int kStartSeconds = 180;  // importing PyTorch from a cold disk took 40
constexpr int kCallSeconds = 120;

std::string base64(const std::vector<char>& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    const std::size_t part = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < part ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += k <= part ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

class PythonCall : public BaselineCall {
 public:
  PythonCall(PythonBaselines& baselines, int id) : baselines_(baselines), id_(id) {}
  ~PythonCall() override {
    if (baselines_.alive()) baselines_.ask({{"command", "release"}, {"id", id_}}, kCallSeconds);
  }
  void prepare(CacheState cache) override { before_ = cache == CacheState::kCold ? "evict" : "call"; }
  double time(int calls) override {
    const json answer = baselines_.ask(
        {{"command", "time"}, {"id", id_}, {"calls", calls}, {"before", before_}}, kCallSeconds);
    before_ = "";
    return answer.value("seconds", 0.0);
  }
  std::vector<std::vector<double>> results() override {
    const json answer = baselines_.ask({{"command", "results"}, {"id", id_}}, kCallSeconds);
    std::vector<std::vector<double>> all;
    if (!answer.contains("results")) return all;
    for (const json& values : answer["results"]) {
      all.emplace_back();
      for (const json& v : values) all.back().push_back(v.is_number() ? v.get<double>() : std::nan(""));
    }
    return all;
  }

 private:
  PythonBaselines& baselines_;
  int id_;
  const char* before_ = "";  // only that process can do it, right before it times
};

}  // namespace

std::unique_ptr<PythonBaselines> PythonBaselines::start(const std::vector<std::string>& words,
                                                        std::string& why, const char* libraries) {
  const char* named = std::getenv("ROOFTILE_PYTHON");
  const bool asked = named != nullptr && *named != '\0';
  const std::string python = asked ? named : "python3";
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return nullptr;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  if (!asked) posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::vector<const char*> arguments = {python.c_str(), "-u"};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  arguments.push_back(nullptr);
  pid_t process = 0;
  const int failed = posix_spawnp(&process, python.c_str(), &actions, nullptr,
                                  const_cast<char* const*>(arguments.data()), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed != 0) {
    close(ends[0]);
    if (asked) why = fmt::format("{} (ROOFTILE_PYTHON) cannot be started", python);
    return nullptr;
  }
  std::unique_ptr<PythonBaselines> baselines(new PythonBaselines(process, ends[0]));
  const json answer = baselines->ask({{"command", "hello"}}, kStartSeconds);
  if (answer.contains("peers") && !answer["peers"].empty()) {
    baselines->hello_ = answer;
    return baselines;
  }
  if (answer.contains("why"))
    why = answer["why"].get<std::string>();
  else if (asked)
    why = answer.contains("error")
              ? fmt::format("{} (ROOFTILE_PYTHON) failed: {}", python, answer["error"].get<std::string>())
              : fmt::format("{} (ROOFTILE_PYTHON) has {}", python, libraries);
  return nullptr;
}

PythonBaselines::~PythonBaselines() { end(); }

void PythonBaselines::end() {
  if (socket_ < 0) return;
  close(socket_);  // the process ends at the end of its input
  socket_ = -1;
  const std::int64_t deadline = now_ns() + 3'000'000'000;
  while (waitpid(process_, nullptr, WNOHANG) == 0) {
    if (now_ns() > deadline) {
      kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
      break;
    }
    usleep(1000);
  }
}

json PythonBaselines::ask(const json& request, int seconds) {
  const auto fail = [&](const std::string& sentence) -> json {
    end();
    return {{"error", sentence}};
  };
  if (socket_ < 0) return {{"error", "the Python process is gone"}};
  const std::string line = request.dump() + "\n";
  for (std::size_t at = 0; at < line.size();) {
    const ssize_t sent = send(socket_, line.data() + at, line.size() - at, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return fail("the Python process ended");
    at += static_cast<std::size_t>(sent);
  }
  const std::int64_t deadline = now_ns() + std::int64_t{1'000'000'000} * seconds;
  std::size_t end_of_line;
  while ((end_of_line = pending_.find('\n')) == pending_.npos) {
    pollfd waiting{socket_, POLLIN, 0};
    const std::int64_t left = (deadline - now_ns()) / 1'000'000;
    const int ready = left > 0 ? poll(&waiting, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      kill(process_, SIGKILL);
      return fail(fmt::format("the Python process did not answer within {} s", seconds));
    }
    char part[65536];
    const ssize_t got = recv(socket_, part, sizeof part, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return fail("the Python process ended");
    pending_.append(part, static_cast<std::size_t>(got));
  }
  json answer = json::parse(pending_.substr(0, end_of_line), nullptr, false);
  pending_.erase(0, end_of_line + 1);
  if (!answer.is_object()) return fail("the Python process answered something else than JSON");
  return answer;
}

int letters_of(const Signature& signature, const char* operand) {
  for (int o = 0; o < signature.operand_count(); ++o)
    if (std::string_view(signature.operands[o].name) == operand)
      return signature.operands[o].shape.outer ? signature.operands[o].shape.count : -1;
  return -1;
}

json options_json(const Spec& spec, const Case& c) {
  const Signature& signature = find_op(spec.function)->signature;
  std::map<std::string, double> values = c.parameters, usual;
  for (const Option& option : spec.options) {
    usual[option.name] = option.otherwise;
    values.emplace(option.name, option.otherwise);
  }
  json own = json::array(), given = json::object(), outputs = json::array();
  for (int k = 0; k < signature.option_count(); ++k) {
    const auto it = values.find(signature.options[k].name);
    if (it != values.end() && it->second != usual[it->first]) own.push_back(it->first);
  }
  for (int o = 0; o < signature.operand_count(); ++o) {
    values.erase(signature.operands[o].name);
    if (signature.operands[o].role != Signature::Role::input) outputs.push_back(signature.operands[o].name);
  }
  // Kernels get reals as f32; but for whole numbers, optimisers', of which f32 would leave 1 - 0.999 four
  // digits, those of exact functions, where a share of 0.8 cuts elsewhere than its f32, and those of
  // functions of numbers alone: a time in f32 is whole minutes.
  std::set<std::string> wide;
  for (int k = 0; k < signature.option_count(); ++k)
    if (signature.has_lists() || spec.tolerance.exact ||
        signature.output_count() == signature.operand_count() ||
        signature.options[k].kind == Signature::Option::Kind::whole)
      wide.insert(signature.options[k].name);
  for (const auto& [name, value] : values) {
    const double its = c.dtype == DType::f64 || wide.count(name) > 0 ? value : static_cast<float>(value);
    // JSON has no infinity.
    given[name] = std::isfinite(its) ? json(its) : json(fmt::format("{}", its));
  }
  return {{"options", given}, {"own_options", own}, {"all_outputs", outputs}};
}

json case_json(const Spec& spec, const Case& c, json operands, json more) {
  more.update(options_json(spec, c));
  more["function"] = spec.function;
  more["parameters"] = c.parameters;
  more["operands"] = std::move(operands);
  return more;
}

json operands_json(const Spec& spec, const std::vector<Operand>& operands, const BenchData* data,
                   std::int64_t offset) {
  const Signature& signature = find_op(spec.function)->signature;
  json all = json::array();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Operand& it = operands[i];
    json one = {{"name", it.name},
                {"dtype", rooftile::name(it.dtype)},
                {"shape", it.shape},
                {"letters", letters_of(signature, it.name)},
                {"read", it.kind != Operand::Kind::output},
                {"written", it.kind != Operand::Kind::input},
                {"pattern", nullptr}};
    if (offset && it.keeps_layout) one["offset"] = offset;
    if (data && !data->operands()[i].pattern.empty()) one["pattern"] = base64(data->operands()[i].pattern);
    all.push_back(std::move(one));
  }
  return all;
}

std::vector<std::unique_ptr<BaselineCall>> PythonBaselines::calls(const Spec& spec, const Case& c,
                                                                  const BenchData& data, int threads,
                                                                  std::string& why) {
  std::vector<Operand> operands;
  for (const Placed& p : data.operands()) operands.push_back(p.operand);
  const json answer =
      ask(case_json(spec, c, operands_json(spec, operands, &data, 0),
                    {{"command", "prepare"}, {"threads", threads}, {"sampled", BenchData::kSampled}}),
          kCallSeconds);
  if (answer.contains("error")) why = answer["error"].get<std::string>();
  std::vector<std::unique_ptr<BaselineCall>> all;
  if (!answer.contains("calls")) return all;
  for (const json& one : answer["calls"]) {
    auto call = std::make_unique<PythonCall>(*this, one.value("id", 0));
    call->name = one.value("name", "");
    call->version = one.value("version", "");
    call->call_us = one.value("call_us", 0.0);
    all.push_back(std::move(call));
  }
  return all;
}

}  // namespace rooftile::harness
