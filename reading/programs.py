"""What is known of programs that commands begin with: which start others, and which certainly do not.

Data for `reading.commandmatching`. A program on no list may do anything: the lists only say where there is
less to ask. What a program does by its own settings and hooks (a pager, a hook of git) stands on no
command line and is not told here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from string import ascii_letters


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STANDARD_FOLDERS = _words("/bin /usr/bin /sbin /usr/sbin /usr/local/bin")
"""Where programs are installed that nobody else's stand in for."""


def installed_name(head: str) -> str:
    """The program's name; as it stands where it lies in a folder that anybody may fill."""
    folder, slash, name = head.rpartition("/")
    return name if folder in STANDARD_FOLDERS or not slash else head


_LAUNCHERS = _words(
    "abduco asciinema aws-vault berglas chamber chruby-exec clush concurrently consul dagger "
    "devbox distrobox dockerize doppler dsh dtach envconsul etcdctl flox fnm forego foreman goenv "
    "heaptrack infisical jenv lima lockrun mispipe nodenv nsjail nvm op pdsh pee pssh pueue "
    "py-spy railway rr rvm s6-setuidgid samply sandbox-exec sem sops summon systemd-inhibit "
    "teller toolbox tsh wait-for-it wait-for-it.sh"
)
"""Take words of their own before the program that they start, and nobody tells how many."""

WRAPPERS = (
    _words(
        ". - ash at bash batch builtin busybox bwrap cgexec chpst chroot chronic chrt command coproc "
        "crontab csh daemonize dash dbus-run-session direnv doas dumb-init elvish entr env eval exec "
        "expect fakechroot fakeroot faketime firejail fish flock gdb gosu gtimeout hyperfine ionice ksh "
        "ld.so linux32 linux64 lldb ltrace mksh mosh newgrp nice nix-shell nohup nsenter nu numactl "
        "parallel perf pkexec prlimit proot proxychains proxychains4 pwsh rbash rlwrap rsh run-parts "
        "runcon runuser schroot script setarch setpriv setsid setuidgid sg sh socat source ssh ssh-agent "
        "sshpass start-stop-daemon stdbuf strace su su-exec sudo sudoedit systemd-nspawn systemd-run taskset "
        "tcsh time timeout tini tmux torsocks toybox trap unbuffer unshare valgrind watch watchexec "
        "xargs xterm xvfb-run zsh alias function hash enable declare typeset local readonly export let "
        "test [ [[ read mapfile readarray unset set shopt "
        "autossh bear caffeinate catchsegv ccache cpulimit cronic cross-env cross-env-shell "
        "dbus-launch distcc dotenv dotenvx eatmydata envchain envdir fakeroot-ng icecc ifne mpiexec "
        "mpirun nodemon nq oksh osh posh retry run0 sbatch scan-build sccache schedtool setlock "
        "softlimit srun torify trickle tsocks tsp xonsh yash ysh ldd"
    )
    | _LAUNCHERS
)
"""Run the command that their words, their input or their variables say, or change what later words mean."""

SETTING = _words(
    "alias declare enable export function hash local mapfile read readarray readonly set shopt trap "
    "typeset unset"
)
"""Those of them that only change what later words mean: each word more sets another thing."""

JOINING = _words(
    "at autossh batch cross-env-shell entr eval hyperfine mispipe mosh nix-shell nodemon parallel pee rsh "
    "runuser script sg ssh sshpass su watch watchexec xterm "
    "asciinema clush concurrently dsh pdsh pssh pueue sem sops"
)
"""Those of them that make one line of their words, which a shell reads."""

OPERANDS: Mapping[str, int] = {
    **dict.fromkeys(_words("autossh chroot chrt faketime flock gosu gtimeout mosh perf"), 1),
    **dict.fromkeys(
        _words("envchain envdir prlimit rsh run-parts setarch setlock setuidgid sg ssh"), 1
    ),
    **dict.fromkeys(_words("su-exec taskset timeout"), 1),
    **dict.fromkeys(_words("at batch bwrap expect firejail gdb lldb parallel proot socat su"), 99),
    **dict.fromkeys(_words("hyperfine nix-shell runuser script systemd-nspawn tmux"), 99),
    **dict.fromkeys(_LAUNCHERS, 99),
}
"""Words without a hyphen that wrappers take before the program that they start; of many, nobody tells where
it stands."""
ALONE: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(_words("bash dash ksh sh zsh"), frozenset({"-c"})),
    **dict.fromkeys(_words("perl ruby node"), frozenset({"-e"})),
    **dict.fromkeys(_words("python python2 python3 pypy"), _words("-c -m -u -B -I -s -E")),
    "npx": _words("-y --yes"),
    "sed": _words("-n -r -E -i -s -u -z"),
    "sudo": _words("-n -E -H -k"),
    "make": _words("-s -k -B"),
}
"""Options of programs that start others behind which no value stands but what is started."""

INTERPRETERS = _words(
    "adb ansible ant apptainer asdf awk bazel bpftrace bpython buildah bun bundle bundler bunx cabal "
    "cargo clisp cmake colima composer conda corepack coverage cProfile crictl crystal ctr dart dc "
    "deno docker docker-compose docker-machine doit dotnet duckdb ed elixir emacs erl ex fab "
    "file-rename flatpak flutter fly flyctl gawk gem gh ghci gmake gnuplot go gradle groovy grunt "
    "guile guix gulp hatch helm heroku hg honcho hy incus inv invoke ipython java jj jrunscript "
    "jshell julia jupyter just jython kubectl lein lerna lftp limactl lua luajit lxc lxc-attach "
    "lxc-execute m4 machinectl make mamba mariadb mawk meson micromamba minikube mise mix mkdocs "
    "mongosh multipass mvn mysql nawk nerdctl ninja nix node nox npm npx nvim nx oc ocaml octave opam "
    "osascript pdb pdm perl php pip pipenv pipx pixi pnpm podman podman-compose poetry pre-commit "
    "prename profile psql ptpython pyenv pypy python python2 python3 R racket rake raku rbenv rebar3 "
    "rename Rscript ruby runc runghc rustup rye sbcl sbt scala scons screen sed sftp singularity snap "
    "sphinx-build sqlite3 stack svn swift task tclsh terraform timeit tofu tox trace ts-node tsx "
    "turbo uv uvx vagrant vi view vim vimdiff volta wish yarn zig"
)
"""Run a program that is written on the line, in a file, or in a container or environment of theirs."""

SCRIPTING = _words(
    "elixir groovy guile ipython java julia lua node osascript perl php pypy python python2 python3 "
    "Rscript ruby runghc scala tclsh ts-node tsx"
)
"""Those that hand what stands behind the script that they run on to it. To the others an option may name
other files to run, unless `STARTING` has those that do."""

MANY: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        _words("ant doit fab gmake grunt gulp inv invoke just make ninja rake scons setup.py task"),
        frozenset(),
    ),
    "gradle": frozenset({"--tests"}),
    "mvn": _words("-pl -T"),
    "turbo": _words("-F --filter"),
}
"""Those that do each thing that they are given, one after another, with those of their options that surely
take the next word (`make -j` does not, but for a number)."""

WRAPPED: Mapping[str, str] = {"gradlew": "gradle", "mvnw": "mvn"}
"""Scripts of a workspace that fetch one of them and hand it all that they are given."""

RUNNING = _words("dlx exec rsh run shell sh ssh x")
"""Subcommands of such programs by which they run whatever follows."""

CONTAINED = _words(
    "apptainer buildah crictl ctr docker docker-compose incus kubectl lxc nerdctl oc podman podman-compose "
    "runc singularity"
)
"""Those that take a container or an image before what runs in it."""
MACHINES = _words("docker-machine limactl machinectl multipass vagrant")
"""Those that do so with a machine, which may be left out before `--`."""
FETCHED = _words("bunx npx uvx")
"""Those whose next word is the program that they fetch and start."""

PLAIN = _words(
    "b2sum base32 base64 basename cat cd chgrp chmod chown cksum cmp column comm cp curl cut date "
    "df diff dir dirname du echo egrep expand false fgrep file find fmt fold grep groups head hexdump "
    "hostname iconv id jq join link ln ls md5sum mkdir mkfifo mktemp mv nl nproc numfmt od "
    "paste pathchk pr printenv printf ps pwd readlink realpath rev rg rm rmdir seq sha1sum sha224sum "
    "sha256sum sha384sum sha512sum shuf shred sleep sort stat strings sum sync tac tail tee touch tr "
    "tree true truncate tsort tty type uname unexpand uniq unlink uptime wc which who whoami xxd yes :"
)
"""Start no other program, save by an option of `STARTING`."""

FOLDER_UNSAID = _words("dir du egrep fgrep find grep ls rg tree")
"""Those of them that work on the folder they are in where none is named."""

STARTING: Mapping[str, tuple[str, ...]] = {
    "find": ("-exec", "-ok"),
    "sort": ("--co",),
    "rg": ("--pre", "--hostname-bin", "--search-zip", "-z"),
    "printf": ("-v",),
    **dict.fromkeys(("compgen", "complete"), ("-C", "-F")),
    "jobs": ("-x",),
    "fc": ("-e", "-s"),
    "bind": ("-x", "-f"),
    "curl": ("--engine", "-K", "--config", "--expand"),
    **dict.fromkeys(
        ("bsdtar", "gtar", "tar"),
        (
            *("--to-command", "--checkpoint-action", "-I", "--use", "--rsh", "--rmt-command"),
            *("--info-script", "--new-volume-script", "-F"),
            *("-T", "--files-from"),  # names that are options in the file are options
        ),
    ),
    "rsync": ("-e", "--rsh", "--rsync-path", "-M", "--remote-o", "--daemon", "--config"),
    "zip": ("-T", "--unzip-command"),
    "man": ("-P", "--pager", "-H", "--ht", "-C", "--conf"),
    "wget": ("--use-askpass", "-e", "--execute", "--config"),
    **dict.fromkeys(("fd", "fdfind"), ("-x", "-X", "--exec")),
    **dict.fromkeys(("nc", "ncat", "netcat"), ("-c", "-e", "--exec", "--sh-exec", "--lua-exec")),
    **dict.fromkeys(("ag", "bat", "batcat"), ("--pager",)),
    "scp": ("-o", "-D", "-F", "-S"),
    "sftp": ("-o", "-b", "-D", "-F", "-S"),
    "sed": ("-e", "--ex", "-f", "--fi"),
    **dict.fromkeys(("apt", "apt-get"), ("-o", "--opt", "-c", "--conf")),
    "dpkg": ("--pre-inv", "--post-inv", "--status-l"),
    "hg": ("--config", "-e", "--ssh", "--remotecmd", "-t", "--tool", "-p", "--prog"),
    "svn": ("--config", "--edi", "--diff"),
    **dict.fromkeys(
        ("make", "gmake"), ("-f", "--fi", "--mak", "-E", "--ev", "-C", "--dir", "-I", "--inc")
    ),
    "npm": (
        *(
            "--script-s",
            "--node-o",
            "--node-g",
            "--userc",
            "--globalc",
            "--git",
            "--shell",
            "--pref",
        ),
        *("-C", "--python", "--brow", "--view", "--edi", "--init-m", "--initm"),
    ),
    "split": ("--filter",),
    "yq": ("--security-e",),
    "patch": ("-e", "--ed"),
    "go": (
        *("-exec", "--exec", "-toolexec", "--toolexec", "-vettool", "--vettool", "-C", "--C", "-w"),
        *("-fixtool", "--fixtool"),
        *("-overlay", "--overlay", "-modfile", "--modfile", "-ldflags", "--ldflags"),
        *("-gccgoflags", "--gccgoflags", "-compiler", "--compiler"),
    ),
    "cargo": ("--conf", "--manif", "-Z", "-C", "+"),
    "ip": ("netns", "vrf", "exec", "-b", "--b"),
    "tc": ("exec", "-b", "--b"),
    "openssl": (
        *("engine", "-engine", "--engine", "-ssl_client_engine", "--ssl_client_engine"),
        *("-prov", "--prov", "-conf", "--conf", "-pre", "--pre", "-post", "--post"),
    ),
    "tcpdump": ("-z",),
    "emacs": ("-e", "-f", "-l", "--e", "--f", "--l", "--script", "-script"),
    "tshark": ("-X",),
    "nmap": ("--scr", "-scr", "--dat", "-dat", "--resu", "-resu"),
    **dict.fromkeys(
        ("pytest", "py.test"),
        (
            *(
                "-p",
                "-c",
                "-o",
                "-W",
                "--over",
                "--root",
                "--confc",
                "--config-f",
                "--pdb",
                "--trace",
            ),
            *("--pyargs", "--pythonw", "--cov-conf", "--ds", "--tx", "--px", "@"),
        ),
    ),
    **dict.fromkeys(
        ("cc", "gcc", "g++", "c++", "clang", "clang++", "gfortran"),
        (
            *("-wrapper", "-fplugin", "--fplugin", "-fpass-plugin", "-B", "-specs", "--specs", "@"),
            *("-fuse-ld", "--ld-path", "-Wl,", "-Xlinker", "-Xclang", "-Xassembler", "--prefix"),
            *("--gcc-toolchain", "-fmodule-mapper", "-Xpreprocessor", "-load", "--config"),
            *("-Wp,", "-Wa,", "-ccc", "--cuda-path", "--ptxas-path", "--hip-path", "--rocm-path"),
        ),
    ),
    "ld": ("--plugin", "-plugin", "@"),
    "mypy": ("--config-f", "--python-e", "--install-t", "@"),
    "pylint": ("--load", "--rcf", "--init"),
    "flake8": ("--conf", "--app", "--ext"),
    "eslint": (
        *("-c", "--conf", "--rulesd", "--resolve-p", "--plug", "-f", "--form", "--pars"),
        *("--init", "--insp"),  # have npm fetch a program
    ),
    "prettier": ("--plug", "--conf"),
    "jest": (
        *("-c", "--conf", "--glob", "--set", "--test", "--run", "--tr", "--rep", "--pre", "--root"),
        *("--env", "--res", "--mod", "--snap", "--filter"),
    ),
    "mocha": (
        "-r",
        "--req",
        "--conf",
        "--imp",
        "--pack",
        "-R",
        "--rep",
        "--loa",
        "-n",
        "-u",
        "--ui",
    ),
    **dict.fromkeys(
        ("vite", "vitest", "webpack", "rollup"), ("-c", "--conf", "--root", "-r", "-p")
    ),
    "mvn": (
        *("-D", "-def", "--def", "-f", "--file", "-s", "--sett", "-g", "--glob", "-t", "--toolc"),
        *("-ps", "-project-s", "--project-s", "-is", "-install-s", "--install-s"),
    ),
    "gradle": (
        *("-I", "--init", "-b", "-c", "-P", "-D", "-p", "-g", "--proj", "--incl", "--build-f"),
        *("--sett", "--system-p", "--gradle-u"),
    ),
    "ant": (
        *(
            "-f",
            "-buildfile",
            "-lib",
            "-D",
            "-listener",
            "-logger",
            "-main",
            "-inputh",
            "-propertyf",
            "-s",
        ),
    ),
    "cmake": ("-P", "-D", "-C", "-E", "-T", "-G", "--", "--preset", "--toolchain"),
    "ctest": ("-S", "-SP", "-D", "-T", "-M", "--scr", "--build", "--test-c", "--test-d"),
    "ninja": ("-f", "-C", "-t"),
    "pip": ("--py", "--edi", "--conf"),
    "uv": ("-p", "--py", "--config-f", "--dir", "--proj"),
    "poetry": ("-C", "--dir", "-P", "--proj"),
    "pnpm": ("--script-s", "--shell", "-C", "--dir", "--conf"),
    "yarn": ("--cwd", "--script-s", "--use-yarnrc"),
    "kubectl": ("--kubec", "--edi", "--exec", "--helm-c", "--enable"),
    "kustomize": ("--helm-c", "--enable"),
    "gcloud": ("--command", "--ssh-f", "--scp-f", "--flags-f"),
    "az": ("--scripts",),
    "helm": ("--post-r", "--kubec"),
    "gpg": ("--photo-v", "--agent-p", "--opt", "--home", "--exec-p", "--dirm", "--pine"),
    "cpio": ("--rsh", "-F", "-I", "-O", "--file"),
    "ssh-keygen": ("-D", "-w"),
    "ssh-add": ("-s", "-S"),
    "rpm": ("--ev", "-E", "--pipe", "--def", "-D", "--macros", "--rcf", "--load"),
    **dict.fromkeys(("dnf", "yum"), ("-c", "--conf", "--seto", "--enablep", "--installr")),
    "javac": (
        *("-J", "-processor", "--processor", "-Xplugin", "@", "-cp", "-classpath", "--class-path"),
    ),
    **dict.fromkeys(
        ("tex", "latex", "pdflatex", "xelatex", "lualatex"),
        ("-shell-e", "--shell-e", "-enable-w", "--enable-w", "-output-d", "--output-d"),
    ),
    "pandoc": (
        *("-F", "-L", "-d", "-t", "-f", "-r", "-w", "--fil", "--lua", "--pdf-e", "--def", "--data"),
        *("--to", "--from", "--read", "--write"),
    ),
    "fzf": ("--prev", "--bind"),
    "install": ("--strip-p",),
    **dict.fromkeys(("ar", "nm", "objcopy", "objdump", "ranlib", "size", "strip"), ("--plug",)),
    "rustc": ("-C", "--codegen", "-Z", "@"),
    "ghc": ("-pgm", "-F", "-fplugin", "-fclear-plugins", "-package-db", "-B", "-e", "@"),
    "protoc": ("--plugin", "@"),
    "aria2c": ("--on-", "--conf"),
    **dict.fromkeys(
        ("yt-dlp", "youtube-dl"),
        (
            "--exec",
            "--conf",
            "--plugin",
            "--down",
            "--ext",
            "--use-p",
            "--netrc-c",
            "--ffmpeg",
            "--ppa",
        ),
    ),
    **dict.fromkeys(
        ("ansible-console", "ansible-inventory", "ansible-playbook", "ansible-pull"),
        (
            "-i",
            "--inv",
            "-M",
            "--mod",
            "--vault",
            "-e",
            "--ext",
            "-c",
            "--conn",
            "--ssh",
            "--s",
            "--play",
        ),
    ),
    **dict.fromkeys(("iptables", "ip6tables"), ("--modp",)),
    "restic": ("-o", "--opt", "--password-c"),
    "rclone": ("--password-c", "--sftp-ss", "--conf", "--metadata-m"),
    "cppcheck": ("--addon",),
    "clang-tidy": ("-load", "--load"),
    **dict.fromkeys(("ssh-copy-id", "sshfs"), ("-o", "-F")),
    "borg": ("--rsh", "--remote-p", "--content-from-c", "--paths-from-c"),
    "duplicity": ("--rsync-o", "--ssh-", "--gpg-", "--par2-"),
    "unison": ("-sshcmd", "-sshargs", "-rshcmd", "-rshargs", "-servercmd", "-merge", "-diff"),
    "mutt": ("-e", "-F"),
    **dict.fromkeys(("mail", "mailx", "s-nail"), ("-S", "-X", "-Y", "-:")),
    **dict.fromkeys(("diff3", "sdiff"), ("--diff-p",)),
    **dict.fromkeys(("ug", "ugrep"), ("--filter", "--pager", "--view", "--config", "-@")),
    "ack": ("--pager", "--ackrc"),
    "gs": ("-sOutputFile", "-o", "-dNOSAFER", "-dDELAYSAFER", "-c", "-I", "@"),
    "systemctl": ("-H", "--ho"),
    "pacman": ("--hookd", "--conf", "--root", "-r", "--sysr"),
    **dict.fromkeys(("play", "rec", "sox"), ("|",)),
    "bundle": ("--gem",),
    "composer": ("-d", "--work"),
    "coverage": ("--rc",),
    **dict.fromkeys(("brew", "conda", "gh", "mamba", "micromamba", "terraform", "tofu"), ()),
    "less": ("+", "-k", "--lesskey"),
    "more": ("+",),
    # Whatever follows is in a language of theirs by which they start programs.
    **dict.fromkeys(("duckdb", "sqlite3", "psql", "mysql", "mariadb", "mongosh", "sbt"), ("",)),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), ("-f", "-i", "-l", "-e", "-E", "-D", "--")),
    **dict.fromkeys(
        ("ex", "nvim", "rvim", "vi", "view", "vim", "vimdiff"),
        ("+", "-c", "-S", "-s", "-u", "-U", "-e", "-E", "-l", "--cmd", "--startup"),
    ),
}
"""Options by which a program starts another, loads a library or sets a variable: their beginnings, since
long options may be cut short and a short one may stand in a row with others; and words without a hyphen
that do so, which may be cut short as well."""

WRITING: Mapping[str, tuple[str, ...]] = {
    "find": ("-delete", "-fprint", "-fls"),
    **dict.fromkeys(("iconv", "shuf", "sort"), ("-o", "--o")),
    "tree": ("-o", "-R"),
    **dict.fromkeys(
        ("bsdtar", "gtar", "tar"), ("-g", "--listed", "--index", "--remove-f", "--vol")
    ),
    "history": ("-a", "-c", "-d", "-w"),
    "pip": ("--log",),
    "kubectl": ("--profile",),
    "journalctl": ("--vac", "--rot", "--flu", "--cursor-f", "--setup", "--update-c"),
    "xmllint": ("-o", "--o"),
    "less": ("-o", "-O", "--log", "--LOG"),
    "sed": ("-i", "--in"),
    "yq": ("-i", "--in", "-s", "--spl"),
    **dict.fromkeys(("awk", "gawk"), ("-d", "-o", "-p")),
    "date": ("-s", "--s"),
    "file": ("-C", "--co"),
    **dict.fromkeys(("tcpdump", "tshark"), ("-w",)),
    "curl": (
        *(
            "-o",
            "-O",
            "-D",
            "-c",
            "--out",
            "--remote-n",
            "--dump",
            "--cookie-j",
            "--trace",
            "--stderr",
        ),
        *("--libc", "--etag-s", "--hsts", "--alt-s", "--ssl-sess"),
        *("-w", "--wr"),  # `%output{x}` writes to a file, and the words may stand in another
    ),
}
"""Options by which a program that reads and prints writes a file, removes one or sets something instead, in
the same form: what is written may be what another program starts."""

READ: Mapping[str, int] = {"hostname": 0, "json.tool": 1, "uniq": 1, "xxd": 1}
"""How many words without a hyphen such programs read; one more is a file that they write, or a name that
they give."""

REMOTE = _words("fly flyctl gcloud heroku rsync scp")
"""Those that may have a shell elsewhere read what they are given."""

SHELLING: Mapping[str, str] = dict.fromkeys(_words("fly flyctl gcloud"), "ssh")
"""The subcommand by which those start what is named in a shell elsewhere: whatever follows may change it."""

PIPING = _words("composite compare convert gm identify magick mogrify montage")
"""Those that take a name with `|` for a program."""

ANY_HYPHENS = frozenset({"npm", "pnpm"})
"""Those to which `-option`, `--option` and `---option` are the same."""

STARTING_WORDS: Mapping[str, frozenset[str]] = {
    "az": frozenset({"run-command"}),
    "brew": _words("exec sh"),
    "gcloud": _words("ssh --"),
}
"""Whole words, wherever they stand, by which a program does so that lets nobody cut its words short."""

STARTING_SUBCOMMANDS: Mapping[str, frozenset[str]] = {
    "brew": _words("bundle irb ruby"),  # a Brewfile is a program
    "systemctl": frozenset({"edit"}),
}
"""The same of words that do so as its subcommand alone."""

VALUED: Mapping[str, frozenset[str]] = {
    "curl": frozenset("AbcCdDeEFHKmoPQrtTuUwxXyYz"),
    "date": frozenset("Idfr"),
    **dict.fromkeys(("pytest", "py.test"), frozenset("kmr")),
    **dict.fromkeys(
        ("cc", "gcc", "g++", "c++", "clang", "clang++", "gfortran"), frozenset(ascii_letters)
    ),
}
"""Letters that end a row of short options everywhere, since the rest of the word is their value."""

_SETTING_PIECES: Mapping[str, re.Pattern[str]] = {
    "printf": re.compile(r"%[^%A-Za-z]*[hjlLtz]*n"),  # counts what it printed into a variable
}


def sets_by_a_piece(name: str, words: Iterable[str | None]) -> bool:
    """Whether a piece of a word has a program set a variable, which may be the one that says where programs
    lie; None is a word that may be anything."""
    piece = _SETTING_PIECES.get(name)
    return piece is not None and any(word is None or piece.search(word) for word in words)


_OF_HG = ("-e", "-p", "-t")
SPARED_BELOW: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "hg": {
        **dict.fromkeys(
            _words("amend annotate archive blame commit diff export grep heads import log"), _OF_HG
        ),
        **dict.fromkeys(_words("status summary tag tip"), _OF_HG),
        **dict.fromkeys(_words("incoming outgoing"), ("-p",)),
        **dict.fromkeys(_words("backout graft rebase"), ("-e",)),
        "bundle": ("-t",),
    },
}
"""Of the options of `STARTING` those that mean another thing below a subcommand: `-p` is a program for one
and a patch for the others."""

ASSIGNING = frozenset({"make", "gmake"})
"""Those to which a word such as `SHELL=x` says what they start."""

_CHECKING = _words("b2sum cksum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum")
NAMES_IN_A_FILE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("du", "sort", "wc"), ("--files0-from",)),
    "find": ("-files0-from",),
    "file": ("-f", "--files-from"),
    "hostname": ("-F", "--file"),
    "jq": ("-f", "--from-file"),
    "strings": ("@",),
    **dict.fromkeys(_CHECKING, ("-c", "--check")),
}
"""Options by which a plain program takes names from a file or from what comes in: their beginnings."""

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

_FAR = ("-c", "--conf", "--up", "--ex", "--rec", "--templ", "-s", "--str")
_SHOWN = ("--ext", "--text", "--out")
GIT_STARTING_BELOW: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("fetch", "pull", "push", "remote"), _FAR),
    **dict.fromkeys(("clone", "ls-remote"), (*_FAR, "-u")),
    **dict.fromkeys(("archive", "fetch-pack", "send-pack"), (*_FAR, *_SHOWN, "-u", "-o")),
    **dict.fromkeys(
        (
            *("diff", "diff-files", "diff-index", "diff-pairs", "diff-tree", "log", "range-diff"),
            *("reflog", "rev-list", "shortlog", "show", "stash", "whatchanged"),
        ),
        _SHOWN,
    ),
    "format-patch": (*_SHOWN, "-o"),
    **dict.fromkeys(("cherry-pick", "revert"), ("--str",)),
    "bisect": ("run",),
    "difftool": ("-x", "--ext"),
    "filter-branch": ("",),
    "filter-repo": ("--",),
    "instaweb": ("-b", "-d", "--bro", "--httpd", "--modu"),
    "daemon": ("--access-h",),
    "svn": ("--authors-p",),
    "grep": ("-O", "--open", "--text"),
    "init": ("--templ",),
    "merge": ("-s", "--str"),
    "rebase": ("-x", "--exec", "-s", "--str"),
    "send-email": ("--sendmail-cmd", "--smtp-server", "--to-cmd", "--cc-cmd", "--header-cmd"),
    "submodule": ("foreach",),
    "fast-export": ("--export",),
}
"""Words behind a subcommand by which it starts something, or writes a file: their beginnings."""

GIT_VERIFYING = (
    *("%G", "%+G", "%-G", "% G", "%(signature", "--show-signature", "--verify-signatures"),
)
"""Pieces of words by which git starts what verifies a signature, which writes and may reach the network."""

GIT_CHANGING: Mapping[str, tuple[str, ...]] = {
    "apply": ("--ap", "--build"),
    "branch": (
        *(
            "-c",
            "-C",
            "-d",
            "-D",
            "-f",
            "-m",
            "-M",
            "-t",
            "-u",
            "--cop",
            "--del",
            "--edi",
            "--forc",
            "--mov",
        ),
        *("--set-up", "--tr", "--uns"),
    ),
    "config": ("-e", "--add", "--ed", "--rem", "--ren", "--rep", "--uns"),
    "remote": (),
    "tag": ("-d", "--del"),
}
"""Subcommands that show something, and change it by an option: a rule that names options and nothing
else, such as `git branch -v`, means to have it shown. Of `remote` every name is a subcommand below."""

_POINTING = ("--con", "--no-con", "--mer", "--no-m", "--poi")
GIT_LISTED: Mapping[str, tuple[str, ...]] = {
    "branch": ("-l", "--li", "-a", "--al", "-r", "--rem", "--show", *_POINTING),
    "tag": ("-l", "--li", "-n", *_POINTING),
}
"""Options by which these show what is named behind them; by the others they make it."""

GIT_REACHING = frozenset({"clone", "fetch", "ls-remote", "pull", "push", "remote"})
"""Those of `GIT_PLAIN` that take the address of another repository."""

GIT_PATHS = frozenset({"add", "checkout", "clean", "ls-files", "restore", "rm"})
"""Those that take names of files, a folder for all that is in it, and options for a folder."""

GIT_ALL: Mapping[str, frozenset[str]] = {"add": _words("-A --all --no-ignore-removal")}
"""Options of theirs for whatever there is, for which a folder or a pattern may do as well."""

GIT_FORMS: Mapping[str, frozenset[str]] = {"cat-file": frozenset({"blob", "tree", "commit", "tag"})}
"""Subcommands that show the same of a name by several options, and by words in place of them."""

GIT_TWINS: Mapping[str, frozenset[str]] = {
    "annotate": frozenset({"blame"}),
    "blame": frozenset({"annotate"}),
    "cat-file": frozenset({"show"}),
    "checkout": frozenset({"restore", "switch"}),
    "log": frozenset({"whatchanged"}),
    "restore": frozenset({"checkout"}),
    "show": frozenset({"cat-file"}),
    "switch": frozenset({"checkout"}),
    "whatchanged": frozenset({"log"}),
}
"""Subcommands that do the same to the same names, by options of their own."""

GIT_LISTING = frozenset({"branch", "tag"})
"""Those that only list what a pattern or such an option stands for."""

GIT_EVERYTHING = (
    *("--all", "--batch", "--branches", "--glob", "--reflog", "--remotes", "--stdin", "--tags"),
    "--pathspec-from-file",
)
"""Options that stand for many names, or for those that a file holds: their beginnings."""

GIT_BY_SETTINGS = frozenset({"fetch", "pull", "push"})
"""Subcommands whose arguments the settings of a repository supply and rename: without any, a push may
go anywhere, and `HEAD:main` is a push of `main`."""

GIT_UNSAID = frozenset({"ls-remote", "merge"})
"""Those whose arguments the settings supply where none is given."""
