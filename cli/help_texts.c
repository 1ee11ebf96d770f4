/* The help of each subcommand. Text only. */
#include "help_texts.h"

#include "text.h"

/* clang-format off */
const struct help_text help_texts[] = {
{ "", N_(
"pawl: a distributed lock whose life follows the work that it protects\n"
"\n"
"usage: pawl [OPTION...] COMMAND [ARG...]\n"
"\n"
"  run KEY -- CMD...     run CMD while holding the lock KEY\n"
"  --version             version, commit and library\n"
"\n"
"Where the store is: --url URL, PAWL_URL, or 'url = ...' in ~/.config/pawl/config\n"
"  redis://[user[:password]@]host[:port][/db], rediss://..., redis+unix:///path[?db=N]\n"
"More of the same for every command: --prefix P, --password-file F, --json, --quiet,\n"
"  --verbose; pawl COMMAND --help has examples; pawl(1) has the exit codes.\n") },
{ "run", N_(
"usage: pawl run [OPTION...] KEY -- COMMAND [ARG...]\n"
"\n"
"Takes the lock KEY, runs COMMAND without a shell, and gives the lock back when COMMAND and all\n"
"that it started are gone. If the lock is lost, they are stopped before anybody else can get it.\n"
"\n"
"  --wait TIME|forever     how long to wait for the lock (default: forever); 0 or -n: one try\n"
"  --lease TIME            how long the lock survives a crash of this machine (30s)\n"
"  --max-hold TIME|none    stop COMMAND after this time (24h)\n"
"  --grace TIME            between TERM and KILL; at most a third of the lease (5s)\n"
"  --no-renew              the lease is the end: stop COMMAND before it\n"
"  --label TEXT            shown to whoever looks at the lock (default: the command's name)\n"
"  --on-busy fail|skip     busy at the end of the wait: code 246, or 0 without running COMMAND\n"
"  -E, --exit CODE         exit code for busy; NAME=CODE,... for others\n"
"  --keep-for-daemon       hold on for background processes (default: stop them);\n"
"                          --leftover stop|wait|leave says it in full\n"
"  --new-owner             do not re-enter the lock KEY of a pawl run around this one\n"
"  --with-parent           end when the process that started pawl ends\n"
"  --pass-url              leave the password in COMMAND's PAWL_URL\n"
"\n"
"COMMAND finds PAWL_KEY, PAWL_FENCE (the fencing token), PAWL_OWNER and PAWL_DEADLINE.\n"
"Exit code: COMMAND's own; 128+n by signal n; 126, 127 as in a shell; else usage 245, busy 246,\n"
"unreachable 247, denied 248, lost 249, max-hold 250, refused 251, unknown 252.\n"
"\n"
"  pawl run --on-busy skip --wait 0 nightly -- /usr/local/bin/backup --full\n"
"  pawl run --wait 30s --max-hold 10m \"order:42\" -- ./settle 42\n") },
};
/* clang-format on */

const size_t n_help_texts = sizeof help_texts / sizeof help_texts[0];
