"""What is known of programs that commands begin with: which start others, and which certainly do not.

Data for `harness.commands`. A program on no list may do anything: the lists only say where there is
less to ask. What a program does by its own settings and hooks (a pager, a hook of git) stands on no
command line and is not told here.
"""

from __future__ import annotations

from collections.abc import Mapping


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


WRAPPERS = _words(
    ". - ash bash builtin busybox chroot chrt command coproc csh dash doas env eval exec expect "
    "fakeroot firejail fish flock gdb gosu ionice ksh ld.so ltrace mksh nice nohup nsenter "
    "numactl parallel pkexec prlimit proot rbash rsh runcon runuser script setarch setpriv "
    "setsid sh source ssh stdbuf strace su sudo systemd-run taskset tcsh time timeout tmux "
    "toybox trap unbuffer unshare valgrind watch xargs xterm zsh alias function hash enable "
    "declare typeset local readonly export let test [ [[ read mapfile readarray unset set shopt"
)
"""Run the command that their words, their input or their variables say, or change what later words mean."""

INTERPRETERS = _words(
    "awk bun cargo cmake deno ed emacs ex gawk go gradle groovy guile java jshell julia just lua "
    "m4 make mawk mvn nawk ninja node npm npx nvim perl php pip pipx pnpm psql python python2 "
    "python3 R Rscript rake ruby scala screen sed sqlite3 tclsh tox uv uvx vi view vim wish "
    "yarn"
)
"""Run a program that is written on the line or in a file."""

PLAIN = _words(
    "b2sum base32 base64 basename cat cd chgrp chmod chown cksum cmp column comm cp curl cut date "
    "df diff dir dirname du echo egrep expand false fgrep file find fmt fold grep groups head hexdump "
    "hostname iconv id jq join link ln ls md5sum mkdir mkfifo mktemp mv nl nproc numfmt od "
    "paste pathchk pr printenv printf ps pwd readlink realpath rev rg rm rmdir seq sha1sum sha224sum "
    "sha256sum sha384sum sha512sum shuf shred sleep sort stat strings sum sync tac tail tee touch tr "
    "tree true truncate tsort tty type uname unexpand uniq unlink uptime wc which who whoami xxd yes :"
)
"""Start no other program, save by an option of `STARTING`."""

STARTING: Mapping[str, tuple[str, ...]] = {
    "find": ("-exec", "-ok"),
    "sort": ("--co",),
    "rg": ("--pre", "--hostname-bin", "--search-zip", "-z"),
    "printf": ("-v",),
    "curl": ("--engine", "-K", "--config"),
    "tar": (
        *("--to-command", "--checkpoint-action", "-I", "--use", "--rsh", "--rmt-command"),
        *("--info-script", "--new-volume-script", "-F"),
    ),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "zip": ("-T", "--unzip-command"),
    "man": ("-P", "--pager", "-H"),
}
"""Options by which a program starts another, loads a library or sets a variable: their beginnings, since
long options may be cut short and a short one may stand in a row with others."""

GIT_OPTIONS = _words(
    "-p --paginate -P --no-pager --no-replace-objects --no-lazy-fetch --no-optional-locks "
    "--no-advice --bare --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs"
)
"""Options of git before its subcommand that stand alone."""
GIT_OPTIONS_WITH_VALUE = _words(
    "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source"
)
"""Those that take a value, as the next word or behind `=`."""
GIT_STARTING = frozenset({"-c", "--config-env", "--exec-path"})
"""Those by which git can be made to start anything."""

GIT_PLAIN = _words(
    "add annotate apply blame branch cat-file check-ignore checkout cherry-pick clean clone "
    "commit count-objects describe diff fetch grep init log ls-files ls-remote ls-tree merge "
    "merge-base mv name-rev notes pull push reflog remote reset restore rev-list rev-parse revert "
    "rm shortlog show show-ref stash status switch tag version whatchanged write-tree"
)
"""Subcommands of git, which no alias can stand in for, that start nothing their words say, save by an
option of `GIT_STARTING_BELOW`."""

_FAR = ("-u", "-c", "--conf", "--up", "--ex", "--rec", "--templ", "-s", "--str")
_SHOWN = ("--ext", "--text", "--out")
GIT_STARTING_BELOW: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("clone", "fetch", "ls-remote", "pull", "push", "remote"), _FAR),
    **dict.fromkeys(("archive", "fetch-pack", "send-pack"), (*_FAR, *_SHOWN, "-o")),
    **dict.fromkeys(
        ("diff", "log", "reflog", "rev-list", "shortlog", "show", "stash", "whatchanged"), _SHOWN
    ),
    **dict.fromkeys(("cherry-pick", "revert"), ("--str",)),
    "bisect": ("run",),
    "difftool": ("-x", "--ext"),
    "filter-branch": ("",),
    "grep": ("-O", "--open", "--text"),
    "init": ("--templ",),
    "merge": ("-s", "--str"),
    "rebase": ("-x", "--exec", "-s", "--str"),
    "send-email": ("--sendmail-cmd", "--smtp-server", "--to-cmd", "--cc-cmd", "--header-cmd"),
    "submodule": ("foreach",),
}
"""Words behind a subcommand by which it starts something, or writes a file: their beginnings."""

GIT_BY_SETTINGS = frozenset({"fetch", "pull", "push"})
"""Subcommands whose arguments the settings of a repository supply and rename: without any, a push may
go anywhere, and `HEAD:main` is a push of `main`."""
