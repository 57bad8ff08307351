#include <fcntl.h>
#include <unistd.h>

#include <exception>
#include <new>
#include <stdexcept>

#include "cli/command_line.h"
#include "cli/failure.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/record.h"

namespace {

using namespace rooftile::cli;

/// Where the three standard files are closed, the next file opened would take their place and get their
/// output.
void hold_standard_files() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
}

/// The exit code; every exception becomes its sentence.
template <class Work>
int guarded(const Work& work) {
  try {
    return work();
  } catch (const Failure& failure) {
    print_last_error(failure.what());
    return failure.code();
  } catch (const std::invalid_argument& e) {  // the harness: options that name nothing
    print_error(e.what());
    return kUsage;
  } catch (const std::bad_alloc&) {
    print_error("not enough memory");
  } catch (const std::exception& e) {
    print_error(e.what());
  } catch (...) {
    print_error("an unknown error");
  }
  return kTrouble;
}

}  // namespace

int main(int argc, char** argv) {
  hold_standard_files();
  install_signal_handlers();
  const int code = guarded([&] {
    set_command_line(argc, argv);
    const int result = read_command_line(argc, argv)();
    stop_if_interrupted();
    return result;
  });
  // What was printed before an error still goes out.
  const int flushed = guarded([] {
    flush_output();
    return static_cast<int>(kOk);
  });
  return code == kOk ? flushed : code;
}
