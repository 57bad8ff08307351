#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <limits>
#include <memory>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/exit_codes.h"
#include "cli/failure.h"
#include "cli/image_commands.h"
#include "cli/manual.h"
#include "cli/options.h"
#include "cli/output.h"
#include "rooftile/harness/bench/commit.h"

namespace rooftile::cli {
namespace {

struct Everything {
  DevicesArguments devices;
  ListArguments list;
  CheckArguments check;
  BenchArguments bench;
  WhyArguments why;
  TraceArguments trace;
  ProfileArguments profile;
  AsmArguments assembly;
  ReportArguments report;
  PlotArguments plot;
  ImageArguments image;
  ExerciseArguments exercise;
  std::vector<std::string> helped;  ///< a command's words
  std::string generated, out = "-";
};

void add_commands(CLI::App& app, Everything& all, std::function<int()>& command) {
  // Sentences of the footers are examples first: that is what one looks for in a help text.
  CLI::App* devices_app =
      app.add_subcommand("devices", "this machine: instruction set and why, caches, rates, peaks; its GPUs");
  devices_app->add_flag("!--no-measure", all.devices.measure,
                        "describe only; measure no bandwidth and no peak");
  add_json(devices_app, all.devices.json);
  devices_app->footer(
      "Examples:\n"
      "  rooftile devices                      describe and measure, some 15 seconds\n"
      "  rooftile devices --no-measure\n"
      "  rooftile devices --json machine.json\n"
      "Of each GPU: what its driver tells, the variants that it gets, device copies by size, what an empty "
      "kernel\n"
      "costs, and clock and power under load, in some seconds and 2.3 GiB of its memory. Without one, the "
      "reason.");
  devices_app->final_callback([&] { command = [&all] { return devices(all.devices); }; });

  CLI::App* list_app = app.add_subcommand("list", "the ops, their functions, dtypes and variants");
  list_app->add_option("OP", all.list.ops, "these alone");
  list_app->add_flag("--tuning", all.list.tuning, "how they run on a GPU: the rows of the tuning table");
  add_json(list_app, all.list.json);
  list_app->footer(
      "Examples:\n"
      "  rooftile list\n"
      "  rooftile list softmax\n"
      "Roles: standard variants are the library's choice, the first that accepts; named ones (another order "
      "of\n"
      "additions, say), rungs of the ladders (the CPU's, and the GPU's for --device cuda or emulated) and "
      "oracles\n"
      "run only when asked for by name.");
  list_app->final_callback([&] { command = [&all] { return list(all.list); }; });

  CLI::App* check_app =
      app.add_subcommand("check", "check variants against the oracle, wrong results and themselves");
  add_selection(check_app, all.check.selection);
  auto* quick =
      check_app->add_flag("--quick", all.check.quick,
                          "two cases of each variant and dtype and one of each option, no wrong results");
  check_app->add_flag("--huge", all.check.huge, "one case of each op beyond 2^31 elements, and nothing else")
      ->excludes(quick);
  auto* random =
      check_app
          ->add_option("--random", all.check.random_cases,
                       "so many random cases of each function, too: shapes, strides, offsets, options")
          ->type_name("N")
          ->check(CLI::Range(0, 100'000'000));
  check_app->add_flag("--random-only", all.check.random_only, "and no others")->needs(random);
  check_app->add_option("--seed", all.check.seed, "where the random cases begin (1)")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()));
  auto* versions =
      check_app
          ->add_flag("--versions", all.check.versions,
                     "check the same functions in plain Python, NumPy, PyTorch, Triton and Numba instead")
          ->excludes(random);
  add_list(check_app, "--language", all.check.languages,
           "these alone: plain,numpy,torch,triton,numba,cutile,cute")
      ->type_name("NAME")
      ->needs(versions);
  add_json(check_app, all.check.json);
  add_csv(check_app, all.check.csv);
  check_app->footer(
      "Examples:\n"
      "  rooftile check                        everything, on every instruction set of this machine\n"
      "  rooftile check softmax --quick\n"
      "  rooftile check softmax_backward --isa avx2 --dtype f16,bf16\n"
      "  rooftile check --random 10000 --seed 7\n"
      "  rooftile check softmax --versions --language numpy,torch\n"
      "\"of tolerance\" is the largest error as a share of what the arithmetic allows. Exit code 1: a check "
      "failed.");
  check_app->final_callback([&] { command = [&all] { return check(all.check); }; });

  CLI::App* bench_app =
      app.add_subcommand("bench", "time variants beside the best copy, the limit and the baselines");
  add_selection(bench_app, all.bench.selection);
  add_list(bench_app, "--shape", all.bench.shapes, "these shapes instead of the op's own")
      ->type_name("64x1024");
  bench_app->add_option("--threads", all.bench.threads, "thread counts (1 and all)")
      ->type_name("N")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 4096));
  bench_app->add_flag("--full", all.bench.full, "all variants, dtypes and shapes, with 1 and all threads");
  auto* no_baselines =
      bench_app->add_flag("!--no-baselines", all.bench.baselines, "leave out other libraries");
  add_list(bench_app, "--baselines", all.bench.baseline_names,
           "on, off (as on the emulated device by itself), or these alone: PyTorch,Triton")
      ->type_name("WHICH")
      ->excludes(no_baselines);
  bench_app
      ->add_flag("--versions", all.bench.versions,
                 "also the kernels' versions in Python's languages, as check --versions judges them")
      ->excludes(no_baselines);
  bench_app
      ->add_option("--baseline-seconds", all.bench.baseline_seconds,
                   "GPU: at most so long for compiling the baselines' kernels ahead (300)")
      ->type_name("N")
      ->check(CLI::Range(0.0, 1e6));
  // Their names of before.
  auto* no_peers = bench_app->add_flag("!--no-peers", all.bench.baselines)->group("");
  add_list(bench_app, "--peers", all.bench.baseline_names, "")
      ->excludes(no_baselines)
      ->excludes(no_peers)
      ->group("");
  bench_app->add_option("--peer-seconds", all.bench.baseline_seconds)->check(CLI::Range(0.0, 1e6))->group("");
  bench_app->add_option("--part", all.bench.part, "GPU: the second third of the cases, say")
      ->type_name("2/3");
  bench_app->add_flag("--resume", all.bench.resume, "GPU: go on with what the file of --json lacks");
  bench_app
      ->add_option("--merge", all.bench.merge,
                   "make one record of these parts for --json, and measure nothing")
      ->type_name("FILE...");
  bench_app
      ->add_option("--compare", all.bench.compare,
                   "say which rows became slower or faster than in this older record")
      ->type_name("FILE");
  bench_app->add_option("--seconds", all.bench.seconds, "start nothing new after so long")
      ->type_name("N")
      ->check(CLI::Range(0.0, 1e6));
  bench_app
      ->add_option(
          "--plot", all.bench.plot,
          "time speed against size, and put a picture of each function, dtype and number of threads into "
          "this folder, as SVG and PNG")
      ->type_name("DIR")
      ->expected(1);
  add_json(bench_app, all.bench.json);
  add_csv(bench_app, all.bench.csv);
  bench_app->footer(
      "Examples:\n"
      "  rooftile bench softmax\n"
      "  rooftile bench softmax --shape 64x1024 --dtype bf16 --threads 1,2\n"
      "  rooftile bench --full --json full.json      then: rooftile report --from full.json\n"
      "  rooftile bench copy --csv - | column -ts,\n"
      "  rooftile bench softmax --compare before.json\n"
      "  rooftile bench softmax --versions\n"
      "  rooftile bench softmax --dtype f32 --threads 1 --plot plots      speed against size, as pictures\n"
      "  rooftile bench --device cuda --part 1/2 --json a.json --resume      then 2/2 to b.json, and:\n"
      "  rooftile bench --merge a.json b.json --json gpu.json\n"
      "\"of copy\": a copy of the same bytes in the same cache state takes that share of the time; \"of "
      "limit\": the\n"
      "hardware's limit does. 5% of the samples took no longer than \"5%\", 95% no longer than \"95%\"; "
      "marks "
      "are explained\n"
      "below the table. A baseline's figure is its time over ours: above 1 ours is faster. On a GPU its "
      "share of "
      "the copy\n"
      "in its own process follows. --json's file is written after each row.");
  bench_app->final_callback([&] { command = [&all] { return bench(all.bench); }; });

  CLI::App* why_app = app.add_subcommand("why", "which variant would run, and what the others answer");
  why_app->add_option("OP", all.why.op, "an op or a function")->required();
  why_app->add_option("SHAPE", all.why.shape, "in the op's own terms, see `rooftile list`")->required();
  why_app->add_option("DTYPE", all.why.dtype, "f32, f16, bf16, …")->required();
  why_app->add_option("--set", all.why.parameters, "a parameter of the call")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  why_app->add_flag("--backward", all.why.backward, "the op's backward function");
  why_app->add_flag("--in-place", all.why.in_place, "the output is the input, where the op allows it");
  why_app->add_option("--layout", all.why.layout, "contiguous, padded_rows, strided_columns or transposed")
      ->type_name("LAYOUT");
  auto* why_isa =
      why_app->add_option("--isa", all.why.isa, "ask this instruction set's kernels")->type_name("ISA");
  why_app->add_option("--device", all.why.device, "cpu; cuda or emulated: the row of the tuning table, too")
      ->type_name("DEVICE")
      ->check(CLI::IsMember({"cpu", "cuda", "emulated"}))
      ->excludes(why_isa);
  add_json(why_app, all.why.json);
  why_app->footer(
      "Examples:\n"
      "  rooftile why softmax 64x1024 bf16\n"
      "  rooftile why softmax 1x100000 f32 --set log=1 --backward\n"
      "  rooftile why softmax 64x1024 f32 --layout strided_columns\n"
      "  rooftile why rms_norm 8192x4096 bf16 --device cuda\n"
      "Nothing is computed and no memory taken. Exit code 1: the library would refuse the call.");
  why_app->final_callback([&] { command = [&all] { return why(all.why); }; });

  CLI::App* trace_app =
      app.add_subcommand("trace", "what a GPU kernel asks of memory, line by line, without a GPU");
  add_case(trace_app, all.trace.what, "else one that fits a cache");
  auto* traced =
      add_list(trace_app, "--variant", all.trace.variants, "these variants; none: the library's choice")
          ->type_name("VARIANT");
  trace_app->add_flag("--all", all.trace.all, "every variant and rung that there is for GPUs")
      ->excludes(traced);
  trace_app
      ->add_option("--architecture", all.trace.architecture, "80, 86, 89 or 90: of the GPU that is played")
      ->type_name("N")
      ->check(CLI::IsMember({80, 86, 89, 90}));
  add_json(trace_app, all.trace.json);
  trace_app->footer(
      "Examples:\n"
      "  rooftile trace softmax\n"
      "  rooftile trace add --shape 4096 --dtype bf16 --all\n"
      "  rooftile trace softmax --all --json trace.json     then: rooftile report --from bench.json "
      "trace.json\n"
      "A request is one instruction of one warp. Global memory moves in sectors of 32 bytes: 32 neighbouring "
      "floats are\n"
      "4 of them; \"used\" is the share of the moved bytes that a thread asked for. Shared memory gives a "
      "word "
      "from each of\n"
      "its 32 banks in a wavefront; conflicts are the wavefronts beyond the fewest that would do. Caches are "
      "not "
      "modelled.");
  trace_app->final_callback([&] { command = [&all] { return trace(all.trace); }; });

  CLI::App* profile_app = app.add_subcommand(
      "profile", "what Nsight Compute measures of a variant on a GPU: the few numbers that matter");
  add_case(profile_app, all.profile.what, "else the first that is measured on GPUs");
  profile_app->add_option("--variant", all.profile.variant, "this one; none: the library's choice")
      ->type_name("VARIANT");
  profile_app->add_option("--tools", all.profile.tools, "the folder of ncu")->type_name("FOLDER");
  auto* from = profile_app->add_option("--from", all.profile.from, "what ncu --csv --page raw wrote before")
                   ->type_name("FILE");
  auto* csv = profile_app->add_option("--csv", all.profile.csv, "keep what ncu writes")->type_name("FILE");
  auto* against = profile_app->add_flag("--against-trace", all.profile.against_trace,
                                        "count on the emulated device, too, and print both");
  profile_app->add_flag("--run", all.profile.run, "make the call once and print nothing: for other profilers")
      ->excludes(from)
      ->excludes(csv)
      ->excludes(against);
  profile_app->footer(
      "Examples:\n"
      "  rooftile profile softmax --shape 8192x4096 --dtype bf16\n"
      "  rooftile profile dot --variant tile --csv dot.csv      then: rooftile profile dot --from dot.csv\n"
      "  rooftile profile add --shape 1048576 --against-trace\n"
      "  nsys profile rooftile profile softmax --run\n"
      "ncu is looked for in $ROOFTILE_CUDA_TOOLS, on PATH, and where toolkits are installed; where it may "
      "not read "
      "the\n"
      "counters, its own sentence says so. It measures each launch alone, with caches emptied before: times "
      "are "
      "bench's.");
  profile_app->final_callback([&] { command = [&all] { return profile(all.profile); }; });

  CLI::App* asm_app = app.add_subcommand("asm", "a variant's assembly with its source lines");
  asm_app->add_option("OP", all.assembly.what.op, "an op or a function (softmax, softmax_backward)")
      ->required();
  asm_app->add_flag("--backward", all.assembly.what.backward, "the op's backward function");
  asm_app->add_option("--variant", all.assembly.variant, "this one; none: the first of the plug-in")
      ->type_name("VARIANT");
  asm_app->add_option("--dtype", all.assembly.what.dtype, "kernels for this element type alone")
      ->type_name("DTYPE");
  asm_app->add_option("--device", all.assembly.device, "cpu or cuda")->type_name("DEVICE");
  asm_app->add_option("--isa", all.assembly.isa, "this instruction set's plug-in: baseline, avx2, avx512")
      ->type_name("ISA");
  asm_app->add_option("--kernel", all.assembly.kernel, "functions whose demangled names match this")
      ->type_name("REGEX");
  asm_app->add_flag("--ptx", all.assembly.ptx, "PTX instead of machine code (cuda)");
  asm_app->add_flag("!--no-source", all.assembly.source, "leave out the source's text");
  asm_app->add_option("--tools", all.assembly.tools, "the folder of cuobjdump and nvdisasm")
      ->type_name("FOLDER");
  asm_app->footer(
      "Examples:\n"
      "  rooftile asm add --variant tile --dtype f32 | less\n"
      "  rooftile asm softmax --device cuda --dtype bf16\n"
      "  rooftile asm softmax --device cuda --ptx --kernel Forward\n"
      "Nothing runs, and no GPU is needed: the plug-in's file is read, by objdump or by cuobjdump and "
      "nvdisasm, "
      "which are\n"
      "looked for in $ROOFTILE_CUDA_TOOLS, on PATH, and where toolkits are installed.");
  asm_app->final_callback([&] { command = [&all] { return assembly(all.assembly); }; });

  CLI::App* report_app =
      app.add_subcommand("report", "check and time the kernels here, and draw one HTML page of it");
  report_app->add_option("--out", all.report.out, "the page (report.html)")->type_name("FILE")->expected(1);
  auto* photo =
      report_app->add_option("--photo", all.report.photo, "your picture for the gallery, PNG or JPEG")
          ->type_name("FILE")
          ->expected(1);
  report_app->add_option("--from", all.report.from, "draw these records (from --json) and measure nothing")
      ->type_name("FILE...")
      ->excludes(photo);
  report_app
      ->add_option(
          "--docs-url", all.report.docs_url,
          "where the links to lessons lead: this, then rooftile/ops/…/README.md; else to the checkout "
          "that holds this command")
      ->type_name("URL");
  add_json(report_app, all.report.json);
  report_app->footer(
      "Examples:\n"
      "  rooftile report                       some 2½ minutes, then open report.html\n"
      "  rooftile report --photo holiday.jpg --out ours.html --json ours.json\n"
      "  rooftile report --from check.json bench.json\n"
      "The page holds all it needs and works offline. Exit code 1: it was written, and a check failed.");
  report_app->final_callback([&] { command = [&all] { return report(all.report); }; });

  CLI::App* plot_app = app.add_subcommand("plot", "draw a record's speed against size as SVG and PNG");
  plot_app->add_option("RECORD", all.plot.record, "of bench --plot --json, or perf_report's")->required();
  plot_app->add_option("DIR", all.plot.folder, "for the pictures; made where it is not there")->required();
  plot_app->footer(
      "Example:\n"
      "  rooftile plot softmax.json plots\n"
      "Lines are variants, baselines, and a copy of the same bytes. PNG needs rsvg-convert, of "
      "librsvg2-bin.");
  plot_app->final_callback([&] { command = [&all] { return plot(all.plot); }; });

  CLI::App* help_app = app.add_subcommand("help", "the help of a command");
  help_app->add_option("COMMAND", all.helped, "none: of them all");
  help_app->footer("Examples:\n  rooftile help\n  rooftile help bench");
  help_app->final_callback([&] {
    command = [&all] {
      std::vector<std::string> words = {"rooftile"};
      words.insert(words.end(), all.helped.begin(), all.helped.end());
      words.emplace_back("--help");
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      return read_command_line(static_cast<int>(arguments.size()), arguments.data())();
    };
  });

  // For the build: what is installed beside the command.
  CLI::App* generate_app =
      app.add_subcommand("generate", "the manual page or the completion for bash")->group("");
  generate_app->add_option("WHAT", all.generated, "man or bash")
      ->required()
      ->check(CLI::IsMember({"man", "bash"}));
  generate_app->add_option("--out", all.out, "where to")->type_name("FILE");
  generate_app->final_callback([&] {
    command = [&] {
      write_destination(all.out, all.generated == "man" ? manual_page(app) : bash_completion(app));
      return static_cast<int>(kOk);
    };
  });

  add_image(app, all.image, command);
}

/// The course's exercises: a command of commands.
void add_exercise(CLI::App& app, Everything& all, std::function<int()>& command) {
  CLI::App* exercise_app = app.add_subcommand("exercise", "the exercises of the course, judged");
  exercise_app->require_subcommand(1);
  exercise_app->footer(
      "Examples:\n"
      "  rooftile exercise list\n"
      "  rooftile exercise start grid_stride       then edit exercises/grid_stride.cu\n"
      "  rooftile exercise check grid_stride\n"
      "Files go into the folder exercises/ of the folder that the command runs in. Exit code 1: not right "
      "yet.");
  const auto add = [&](const std::string& word, const std::string& what, const std::string& example) {
    CLI::App* sub = exercise_app->add_subcommand(word, what);
    sub->footer("Example:\n  rooftile exercise " + example);
    sub->final_callback([&all, &command, word] {
      all.exercise.what = word;
      command = [&all] { return exercise(all.exercise); };
    });
    return sub;
  };
  add("list", "every exercise, its lesson, and whether you solved it", "list");
  add("progress", "how many are solved, and which comes next", "progress");
  for (const auto& [word, what] : std::initializer_list<std::pair<const char*, const char*>>{
           {"start", "copy an exercise's start file to exercises/"},
           {"check", "build your file alone and judge it"},
           {"hint", "the next of three hints"},
           {"solution", "print the solution"}}) {
    CLI::App* sub = add(word, what, std::string(word) + " grid_stride");
    sub->add_option("NAME", all.exercise.name, "an exercise; `rooftile exercise list` shows them")
        ->required();
    if (std::string_view(word) == "check")
      sub->add_option("--file", all.exercise.file, "judge this file instead of the one in exercises/")
          ->type_name("FILE");
  }
}

/// An option's empty value is a mistake ("--json $file" with no $file), never a wish.
void refuse_empty_values(CLI::App& app) {
  const CLI::Validator not_empty(
      [](const std::string& value) { return value.empty() ? std::string("an empty value was given") : ""; },
      "", "");
  for (CLI::Option* option : app.get_options())
    if (option->nonpositional() && option->get_items_expected_max() > 0) option->check(not_empty);
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    refuse_empty_values(*command);
}

/// The last paragraphs of --help, which are sections of the manual page.
std::string surroundings() {
  std::string text = "Environment:\n";
  for (const EnvironmentVariable& variable : kEnvironment)
    text += fmt::format("  {:21}{}\n", variable.name, variable.text);
  text += "Exit codes:\n";
  for (const ExitCodeMeaning& meaning : kExitCodeMeanings)
    text += fmt::format("{:5}  {}\n", static_cast<int>(meaning.code), meaning.text);
  return text;
}

/// The command line as far as it was understood: "rooftile image".
const CLI::App* innermost(const CLI::App& app, std::string& path) {
  const CLI::App* inner = &app;
  for (path = "rooftile"; !inner->get_subcommands().empty(); path += " " + inner->get_name())
    inner = inner->get_subcommands().front();
  return inner;
}

/// "--json", …
std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> all;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) all.push_back("--" + name);
  return all;
}

/// CLI11's sentences, with the place to read on; ours where it could not know what was meant.
std::string sentence_of(const CLI::ParseError& e, const CLI::App& app) {
  std::string path;
  const CLI::App* inner = innermost(app, path);
  std::vector<std::string> commands;
  for (const CLI::App* command : inner->get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(command->get_name());
  const std::vector<std::string> extras = app.remaining(true);
  const std::string word = extras.empty() ? std::string() : extras.front();
  const bool extra = dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr;
  const bool missing = dynamic_cast<const CLI::RequiredError*>(&e) != nullptr;
  if ((extra || missing) && word.starts_with("--")) {
    const std::string option = word.substr(0, word.find('='));
    return fmt::format("no option \"{}\"{}; see {} --help", option, suggestion(option, options_of(*inner)),
                       path);
  }
  if (extra && word.size() > 1 && word[0] == '-' && word[1] >= '0' && word[1] <= '9')
    return fmt::format("\"{}\": negative numbers are not understood here; a size is a whole number from 0",
                       word);
  if ((extra || missing) && !commands.empty() && !word.empty() && word[0] != '-')
    return fmt::format("no command \"{}\"{}; {} --help lists them", word, suggestion(word, commands), path);
  if (missing && !commands.empty())
    return fmt::format("a command is missing: {} {}", path, fmt::join(commands, " or "));
  return fmt::format("{}; see {} --help", e.what(), path);
}

}  // namespace

std::function<int()> read_command_line(int argc, char** argv) {
  auto app = std::make_shared<CLI::App>(
      "Checks and times rooftile's kernels, and shows what this machine can do.", "rooftile");
  auto all = std::make_shared<Everything>();
  std::function<int()> command;
  app->set_version_flag("-V,--version", fmt::format("rooftile {} ({})", ROOFTILE_VERSION, harness::commit()),
                        "print the version and the commit it was built from");
  app->set_help_flag("-h,--help", "print this help");
  app->require_subcommand(0, 1);
  app->failure_message(CLI::FailureMessage::simple);
  const std::string footer =
      "Examples:\n"
      "  rooftile devices\n"
      "  rooftile check softmax\n"
      "  rooftile bench softmax --json my.json\n"
      "  rooftile why softmax 64x1024 bf16\n"
      "  rooftile report --photo holiday.jpg\n"
      "  rooftile help bench                   all about one command; so does rooftile bench --help\n"
      "Every error is one sentence on standard error. A file appears whole or not at all; what bench "
      "measured\n"
      "before it was interrupted stands in the files of --json and --csv.";
  app->footer(footer);
  add_commands(*app, *all, command);
  add_exercise(*app, *all, command);
  refuse_empty_values(*app);
  try {
    app->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    // CLI11 would show the help of something else than was meant.
    if (const auto extras = app->remaining(true); !extras.empty())
      throw Failure(kUsage, sentence_of(CLI::ExtrasError(extras), *app));
    if (app->get_subcommands().empty()) app->footer(footer + "\n\n" + surroundings());
    return [text = app->help()] { return print_text(text), static_cast<int>(kOk); };
  } catch (const CLI::CallForVersion& version) {
    return [text = std::string(version.what())] { return say("{}\n", text), static_cast<int>(kOk); };
  } catch (const CLI::ParseError& e) {
    throw Failure(kUsage, sentence_of(e, *app));
  }
  if (!command) refuse("a command is missing; rooftile --help lists them");
  return [app, all, command] { return command(); };
}

}  // namespace rooftile::cli
