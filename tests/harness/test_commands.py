"""Rules about commands: however a denied command is dressed up, it never simply runs."""

from __future__ import annotations

import itertools
import string
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.agentconfig import Features, ToolRule
from harness.patterns import When
from harness.policy import Policy, Verdict
from harness.rules import Level, LevelledRule
from harness.tools import Effect, Tool
from net.addresses import meant_by
from reading.commandmatching import Match, occurs
from reading.commandwords import LONGEST, Word, read, simple_command
from tests.patience import PATIENCE

BASH = Tool(
    "bash",
    "Runs a command.",
    {"type": "object", "properties": {"command": {"type": "string"}}},
    lambda _c, _g: "",
    Effect.WORKSPACE,
    general=True,
)


def prefix(words: str) -> When:
    return When(argument="command", prefix=words)


def judged(command: str, *denied: str, allowed: tuple[str, ...] = ()) -> Verdict:
    """With everything allowed but what is denied; or only what is `allowed`, with whatever may follow."""
    own = [ToolRule(tool="bash", when=prefix(f"{words} *")) for words in allowed]
    others = [
        LevelledRule(
            ToolRule(tool="bash", permission="always_deny", when=prefix(words)), Level.AGENT
        )
        for words in denied
    ]
    policy = Policy(own or [ToolRule(tool="*")], others, {"bash": BASH}, meant_by)
    return policy.judge(BASH, "bash", Features(), arguments={"command": command}).verdict


@pytest.mark.parametrize(
    "command",
    [
        "git -C . push",
        "git --git-dir=.git --work-tree . push -f",
        "git --no-pager -c a.b=c push",
        "sudo -u x git -C /y push",
        "sh -c 'git -C . push'",
        "git 2>/dev/null push",
        "/usr/bin/../bin/git -P push",
    ],
)
def test_what_can_be_read_through_is_denied(command: str) -> None:
    assert judged(command, "git push") is Verdict.DENY


@pytest.mark.parametrize(
    "command",
    [
        "git $(echo push)",
        "x=push; git $x",
        "echo push | xargs git",
        "git --unheard-of push",
        "git -c alias.p=push p",
        "git p",
        "git pu*",
        "git {push,}",
        "g?t push",
        "git pus[h]",
        "$'git' push",
        'git $"push"',
        "git ${x:-push}",
        "git `printf push`",
        "env -S 'git pu''sh'",
        "printf 'git %s' push | sh",
        "sh <<< 'git pu\\sh'",
        "sh <<END\ngit pu\\\nsh\nEND",
        'python3 -c \'import os; os.system("git " + "push")\'',
        "perl -e 'exec qw(git), chr(112).q(ush)'",
        "busybox sh ./x",
        "ssh host x",
        "find . -exec ./x {} +",
        "find . -execdir ./x ';'",
        "nohup ./x &",
        "time ./x",
        "command ./x",
        "exec ./x",
        'eval "$x"',
        "alias g=git",
        'g() { git "$@"; }',
        'function g { git "$@"; }',
        "PATH=. ls",
        "printf -v PATH .",
        "printf %n PATH",
        "printf 'x%-*.3lln' 5 PATH",
        "export PATH=.",
        "hash -p ./git ls",
        "cp /usr/bin/git ls; ./ls pu",
        "make",
        "sort --compress-program=./x f",
        "rg --pre ./x y",
        "git submodule foreach ./x",
        "git bisect run ./x",
        "git rebase -x ./x",
        "git fetch --upload-pack=./x",
        "git fetch --upl=./x y",
        "git clone 'ext::sh -c x' y",
        "git grep -O./x y",
        "git diff --ext-diff",
        "git send-pack origin",
        "git config core.pager ./x",
        "git --exec-path=. status",
        "git\u00a0push",
        "git\u2003push",
        "git status\u2028git pu\u200bsh",
        "g\u200bit push",
        "echo 'open",
        "ls {PATH}>x",
        "[ -v 'a[$(./x)]' ]",
        "echo ${x@P}",
        "ls <(./x)",
        "coproc ./x",
        "trap ./x EXIT",
        "while ./x; do :; done",
        "~/bin/ls",
        "git push\0",
        "git -C $empty log push",
        "git -C * log push",
        "git --git-dir ${empty} status push",
        "git grep -nO'./x;' y",
        "git grep --op=./x y",
        "git clone -qu ./x y z",
        "git clone --u=./x y z",
        "git clone -qc core.sshCommand=./x ssh://y/z",
        "git clone --co=core.sshCommand=./x ssh://y/z",
        "git clone --te=./x y z",
        "git init --te ./x",
        "git merge -ns x y",
        "git ls-remote --u=./x .",
        "rg -nz x",
        "curl --engine ./x.so y",
        "curl -sK x",
        'cat "\\\\$(./x)"',
        "git >&-push",
        "git 2>& -push origin",
        "git <&-push",
    ],
)
def test_what_cannot_be_read_asks(command: str) -> None:
    assert judged(command, "git push") is not Verdict.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "ls -la | grep -i x > out.txt 2>&1",
        'cat *.py; wc -l $HOME/x "${TMPDIR}/y"',
        "git status && git log -p --oneline | head -20",
        "git -C sub commit -am 'Do not push; yet (maybe)'",
        "git add src/*.py",
        "git fetch origin",
        "git log -",
        'echo "it\'s \\"fine\\" & done" >> notes',
        "find . -name '*.py' | sort | uniq -c",
        "mkdir -p a/b/c",
    ],
)
def test_plain_work_is_not_asked_about(command: str) -> None:
    assert judged(command, "git push", "rm -rf") is Verdict.ALLOW


def test_options_in_another_order_or_form_ask() -> None:
    for command in ("rm -fr x", "rm -r -f x", "rm x -rvf", "rm --recursive --force x", "rm $x"):
        assert judged(command, "rm -rf") is Verdict.ASK
    assert judged("rm -r x", "rm -rf") is Verdict.ALLOW
    assert judged("git push origin +main", "git push --force") is Verdict.ASK
    assert judged("git push origin :main", "git push --delete") is Verdict.ASK
    assert judged("git push origin main", "git push --force") is Verdict.ALLOW


DRESSED = {
    "curl -X POST": [
        "curl -XPOST u", "curl -sXPOST u", "curl --request=POST u", "curl --requ POST u",
        "curl --requ=post u", "curl u -X POST", "curl -X 'PO'\"ST\" u", "curl u -sSX POST",
    ],
    "curl --request=POST": ["curl -X POST u", "curl -sXPOST u", "curl --req POST u"],
    "curl -XPOST": ["curl -X POST u", "curl --request POST u", "curl -sX POST u"],
    "git branch -D main": [
        "git branch -Dmain", "git branch main -D", "git branch --delete --force main",
        "git branch -df heads/main", "git branch --del --fo refs/heads/main", "git branch -D -- main",
        "git branch -D @", "git 2>x branch -qD main",
    ],
    "git tag -d v1": ["git tag -dv1", "git tag --del v1", "git tag v1 -d", "git tag -d refs/tags/v1"],
    "git checkout main": [
        "git checkout -", "git checkout -f main", "git checkout main^0", "git checkout @",
        "git -C . checkout -q main", "git checkout '@{-1}'", "git checkout --detach main",
        "git checkout HEAD:main",
    ],
    "git checkout secret": [
        "git checkout -- .", "git checkout .", "git checkout -- ./", "git checkout HEAD -- x/..",
        "git checkout -f", "git checkout -p", "git switch -", "git switch secret", "git switch -C secret",
        "git restore secret", "git restore .", "git restore --source=HEAD .", "git -C x restore -W .",
    ],
    "git switch main": ["git checkout main", "git checkout -qf main", "git checkout -", "git switch -"],
    "git restore -- secret": ["git checkout secret", "git checkout HEAD -- secret", "git checkout ."],
    "git checkout -b x": ["git switch -c x"],
    "git checkout -f": ["git switch --discard-changes main", "git restore -q ."],
    "git checkout": ["git switch main", "git restore x"],
    "git blame secret": ["git annotate secret", "git annotate -l ./secret"],
    "git merge main": [
        "git merge -", "git merge 'main~0'", "git merge x heads/main", "git merge", "git merge -q",
    ],
    "git ls-remote evil": ["git ls-remote", "git ls-remote -q"],
    "git reset --hard HEAD": ["git reset --hard", "git reset --har @", "git reset HEAD --hard"],
    "find . -delete": ["find -delete", "find ./ -delete", "find ./x/.. -delete"],
    "git diff main": ["git diff main..x", "git diff x...main"],
    "git -C x push": ["git --no-pager -C x push", "cd x && git push", "git --git-dir=x/.git push"],
    "date -s 2020": ["date -s2020", "date --set=2020", "date --se 2020", "date -us2020", "date -us 2020"],
    "cat /etc/passwd": [
        "cat </etc/passwd", "cat 0</etc/passwd", "cat -n < /etc/./passwd", "</etc/passwd cat",
        "cd /etc && cat passwd", "cat - </etc/../etc/passwd", "cat -", "cat x/../etc/PASSWD",
    ],
    "tee /etc/x": ["tee >/etc/x", "tee y >>/etc/x", "tee -a /etc//x"],
    "cp a /etc": [
        "cp -t/etc a", "cp --target-directory=/etc a", "cp -rt /etc/ ./a", "cp a b /etc",
        "cd /etc && cp --target-directory=. /y/a", "cd /etc/x && cp -t.. /y/a",
    ],
    "head -n 5": ["head -5 x", "head -n5 x", "head -qn05 x", "head --lines=5 x", "head x -n 5"],
    "chmod 777 x": ["chmod 0777 x", "chmod -R 777 ./x", "chmod -v 00777 y x"],
    "rm -rf /": ["rm -rf //", "rm / -r -f", "rm --recursive -f /.", "rm -fr -- /"],
    "sort -o /x": ["sort -o/x y", "sort --output=/x y", "sort y -uo /x", "sort --out /x y"],
    "git rm secret.txt": [
        "git rm 'secret.*'", "git rm 'secre[t].txt'", "git rm ':(glob)sec*'", "git rm -r :/", "git rm -r .",
        "git rm 'secre\\t.txt'", "git rm 's?cret.txt'", "git rm --pathspec-from-f=x", "git rm -r ..",
    ],
    "git checkout .": ["git checkout ':/'", "git checkout '*'", "git checkout HEAD -- '*'"],
    "git restore .": ["git restore ':/'", "git restore '*'", "git restore :"],
    "git add .": ["git add ':/'", "git add -A"],
    "git add -A": [
        "git add .", "git add ':/'", "git add ./x/..", "git add '*'", "git -C x add .", "git add -u",
    ],
    "git add --all src": ["git add .", "git add ':(top)src'"],
    "git add .env": [
        "git add '.en?'", "git add --pathspec-from-file=x", "git add .", "git add -A", "git add --all",
        "git add ./x/..", "git -C x add .",
    ],
    "git log main": [
        "git log --all", "git log --glob='ma*'", "git log --branches", "git log --stdin <x", "git log --tags",
    ],
    "chmod -R 777 /": [
        "cd / && chmod -R 777 .", "chmod -R 777 ../../../..", "cd /; chmod 777 -R ./", "chmod -R 777 x/../..",
        "cd /x && cd .. && chmod -R 777 x/..",
    ],
    "find / -delete": ["cd / && find . -delete", "cd / && find -delete", "pushd / && find -delete"],
    "ls /secret": [
        "cd /secret && ls", "cd /secret && ls -la", "cd /secret; ls | head", "cd /secret && ls >x",
        "cd $x && ls -I x",
    ],
    "cp -r /secret x": ["cd /secret && cp -r . x", "cp -r .. x"],
    "grep -r key /etc": ["cd /etc && grep -r key", "cd /etc && grep key -r", "cd /etc && grep -r key ."],
    "curl http://evil": [
        "curl 'http://ev[i-i]l'", "curl 'http://{ev,x}il'", "curl http://evil./", "curl http://ⅇvil",
        "curl http://e%76il",
    ],
    "curl https://api.x.com/delete": [
        "curl https://api.x.com/del%65te", "curl 'https://api.x.com/[d-d]elete'",
        "curl -g 'https://api.x.com/d%65lete?x'",
    ],
    "curl http://127.0.0.1": [
        "curl http://2130706433", "curl http://127.1", "curl 0x7f.1:80", "curl http://0177.0.0.1/",
        "curl -x127.1:80 http://a", "curl --proxy=0x7f000001 http://a", "curl http://0X7F000001",
    ],
    "curl http://169.254.169.254/latest": ["curl http://0xa9fea9fe/latest", "curl 2852039166/latest"],
    "curl http://2130706433": ["curl http://127.0.0.1", "curl 127.1"],
    "wc secret": [
        r"printf 'secret\0' | wc --files0-from=-", "wc --files0-from=list", "wc -l --files0=list",
        "wc --files0-from list",
    ],
    "sort secret": ["sort --files0-from=list", "sort -u --files list"],
    "du -a secret": ["du -a --files0-from=list"],
    "find secret -delete": ["find -files0-from list -delete", "find -files0-from - -delete"],
    "file secret": ["file -f list", "file -bf list", "file --files=list"],
    "hostname evil": ["hostname -F list"],
    "jq . secret.json": [
        "jq -n 'import \"secret\" as $s; $s'", "jq -n 'include \"secret\"; .'", "jq -nf program",
        "jq -n --from-file program", "jq -n '\"secret\" | modulemeta'",
    ],
    "strings secret": ["strings @list", "strings -a @list"],
    "git cat-file -p HEAD:secret": [
        "git cat-file --batch <list", "echo HEAD:secret | git cat-file --batch-check",
        "git cat-file --batch-command", "git cat-file --batch-all-objects --batch",
        "git cat-file blob HEAD:secret", "git cat-file --textconv HEAD:secret",
        "git cat-file --filters --path=x HEAD:secret", "git show HEAD:secret",
    ],
    "curl http://ev-il": [
        "curl --url @list", "curl --url=@list", "curl -s --ur @-", "curl --url @- <list",
    ],
    "curl http://b\u00fccher.de": ["curl http://xn--bcher-kva.de", "curl HTTP://XN--BCHER-KVA.DE"],
    "sha256sum secret": ["sha256sum -c list", "sha256sum --check <list", "sha256sum --quiet -wc list"],
}  # fmt: skip
"""What a rule denies, and the same in other words."""


@pytest.mark.parametrize(
    ("denied", "command"), [(denied, one) for denied, all_ in DRESSED.items() for one in all_]
)
def test_a_denied_command_in_other_words_asks(denied: str, command: str) -> None:
    assert judged(command, denied) is not Verdict.ALLOW


@pytest.mark.parametrize("command", ["pip install -q evil", "pip install -q --no-deps 'ev'il"])
def test_a_rule_that_allows_more_vouches_for_no_command_that_may_be_denied(command: str) -> None:
    allowed = ("pip install -q",)
    assert judged(command, "pip install evil", allowed=allowed) is Verdict.ASK
    assert judged("pip install -q x", "pip install evil", allowed=allowed) is Verdict.ALLOW


@pytest.mark.parametrize("denied", ["go test -run=Deploy", "go test -run Deploy"])
@pytest.mark.parametrize("given", ["-run Deploy", "-run=Deploy", "--run=Deploy"])
def test_a_value_joined_to_an_option_of_one_hyphen_is_the_next_word_of_another(
    denied: str, given: str
) -> None:
    allowed = ("go test ./... -v",)
    assert judged(f"go test ./... -v {given}", denied, allowed=allowed) is not Verdict.ALLOW
    assert judged("go test ./... -v -run Other", denied, allowed=allowed) is Verdict.ALLOW


UNTOUCHED = {
    "curl -X POST": [
        "curl -sS https://a.example/x", "curl -sSfL -o page https://a.example/post", "curl u",
        "curl --fail --silent https://a.example/", "curl -d a=b u",
    ],
    "curl --request=POST": ["curl -sS https://a.example/x", "curl --head https://a.example/"],
    "git branch -D main": [
        "git status", "git log -n5", "git branch", "git branch -a", "git branch --list",
        "git branch --all", "git branch --remotes", "git branch --list 'fix/*'", "git branch -D domain",
        "git branch -d main-2", "git log -p main", "git branch -m x y",
    ],
    "git checkout main": [
        "git checkout -b maintenance", "git checkout main.py", "git restore x", "git switch maintenance",
        "git checkout main/x.py", "git log -", "git diff main",
    ],
    "git switch -C main": ["git checkout x", "git switch -C x", "git restore ."],
    "git checkout -f": ["git switch main", "git log -p"],
    "git -C x push": ["git -C x status", "git fetch"],
    "git tag -d v1": ["git tag -l", "git tag --list 'v*'", "git tag v10", "git tag -d v11", "git show v1"],
    "git merge main": ["git merge maintenance", "git merge --no-ff x"],
    "git reset --hard HEAD": ["git reset x", "git reset HEAD x"],
    "find . -delete": ["find . -name x", "find -type f", "find x -delete"],
    "git reset --hard": ["git reset HEAD x", "git status"],
    "date -s 2020": ["date", "date +%Y", "date -d yesterday", "date -u --iso-8601"],
    "cat /etc/passwd": ["cat notes.txt", "cat <x >y", "cat /etc/passwd.d/x", "ls -l /etc/passwd"],
    "rm -rf /": ["rm -rf build", "rm -r a/b", "rm -f /x", "cd web && rm -rf dist", "rm -rf ../dist"],
    "git rm secret.txt": ["git rm x", "git rm -r src", "git rm ./x/../y", "git log '*.txt'"],
    "git add -A": ["git add src", "git add -v x.py"],
    "git add .env": ["git add src", "git add -v x.py", "git commit -m 'Why?'", "git diff --stat"],
    "git log main": ["git log -p x", "git log --oneline -n5", "git branch --all"],
    "ls -l": ["cd src && ls", "cd src && ls x"],
    "ls /secret": ["ls", "ls src", "cd src && ls x", "cd src && cat x", "cd src && pwd"],
    "grep -r key /etc": ["grep -r key src", "grep -r key .", "cd src && grep key x"],
    "chmod -R 777 /": ["chmod -R 777 build", "cd web && chmod -R 777 dist"],
    "curl http://127.0.0.1": ["curl http://127.0.0.2", "curl -m 10 http://128.1/", "curl http://a/127"],
    "wc secret": ["wc -l x", "sort --files0-from=list"],
    "sha256sum secret": ["sha256sum x"],
    "file secret": ["file x", "file -b x"],
    "jq . secret.json": ["jq . x.json", "jq '.imports[]' x.json"],
    "git cat-file -p HEAD:secret": [
        "git cat-file -p HEAD:x", "git cat-file blob HEAD:x", "git show HEAD:x",
    ],
    "git show HEAD:secret": ["git show HEAD:x", "git cat-file blob HEAD:x"],
    "curl http://evil": ["curl http://good", "curl -sSf -o page http://good.example/evil.html"],
    "curl http://ev-il": ["curl -d @x --url http://good"],
    "cp a /etc": ["cp a b", "cp -r x y", "cp b /etc"],
    "chmod 777 x": ["chmod +x x", "chmod 755 x"],
    "head -n 5": ["head x", "head -n 50 x"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("denied", "command"), [(denied, one) for denied, all_ in UNTOUCHED.items() for one in all_]
)
def test_a_rule_leaves_alone_what_it_plainly_does_not_touch(denied: str, command: str) -> None:
    assert judged(command, denied) is Verdict.ALLOW


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        ("podman run i ./x", "podman"),
        ("podman run i ./x", "podman run"),
        ("docker exec c ./x", "docker exec"),
        ("kubectl exec p -- ./x", "kubectl"),
        ("entr ./push.sh", "entr"),
        ("poetry run sh -c x", "poetry"),
        ("poetry run sh -c x", "poetry run"),
        ("pipenv run ./x", "pipenv"),
        ("hatch run ./x", "hatch"),
        ("conda run -n e ./x", "conda run"),
        ("bundle exec ./x", "bundle exec"),
        ("npm exec ./x", "npm exec"),
        ("bwrap -- x", "bwrap"),
        ("systemd-nspawn x", "systemd-nspawn x"),
        ("nix-shell --run ./x", "nix-shell"),
        ("start-stop-daemon -S -x ./x", "start-stop-daemon"),
        ("run-parts .", "run-parts"),
        ("sg g ./x", "sg"),
        ("watchexec ./x", "watchexec"),
        ("wget --use-askpass=./x u", "wget"),
        ("wget --use-ask ./x u", "wget"),
        ("wget -qe use_askpass=./x u", "wget"),
        ("fd . -X x", "fd"),
        ("fd -Hx x", "fd"),
        ("fdfind . --exec-batch x", "fdfind"),
        ("ncat -le ./x", "ncat"),
        ("split --filter=./x y", "split"),
    ],
)
def test_a_word_does_not_vouch_for_a_program_made_to_start_others(
    command: str, allowed: str
) -> None:
    assert judged(command, "git push", allowed=(allowed,)) is Verdict.ASK


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        ("docker ps -a", "docker ps"),
        ("kubectl get pods", "kubectl get"),
        ("poetry run pytest -q", "poetry run pytest"),
        ("npm run build", "npm run build"),
        ("wget -q https://a.example/", "wget"),
        ("fd -H notes", "fd"),
    ],
)
def test_what_a_rule_names_of_such_a_program_runs(command: str, allowed: str) -> None:
    assert judged(command, "git push", allowed=(allowed,)) is Verdict.ALLOW


@pytest.mark.parametrize(
    "command",
    ["git push", "git push --all", "git push origin HEAD:main", "git push https://x/y main"],
)
def test_where_a_push_goes_is_the_repositorys_word(command: str) -> None:
    assert judged(command, "git push origin main") is Verdict.ASK


def test_a_push_that_sets_its_upstream_is_not_taken_for_one_that_starts_a_program() -> None:
    assert judged("git push -u origin main", "rm -rf") is Verdict.ALLOW
    assert judged("git clone -u ./x y", "rm -rf") is Verdict.ASK


def test_a_program_nobody_here_knows_runs_where_a_rule_names_the_command() -> None:
    assert judged("npm test", "git push") is Verdict.ASK
    assert judged("npm test", "git push", allowed=("npm test",)) is Verdict.ALLOW
    assert judged("pytest -q", "git push", allowed=("pytest",)) is Verdict.ALLOW
    assert judged("npm test && ./x", "git push", allowed=("npm test",)) is Verdict.ASK
    assert judged("docker container run x", "docker run", allowed=("docker",)) is Verdict.ASK
    assert judged("docker ps -a", "docker run", allowed=("docker ps",)) is Verdict.ALLOW
    assert judged("python -c 'x'", "git push", allowed=("python",)) is Verdict.ASK
    assert judged("xargs git", "git push", allowed=("xargs",)) is Verdict.ASK
    assert judged("git p", "git push", allowed=("git",)) is Verdict.ASK


def test_a_narrower_rule_vouches_for_nothing_that_a_broader_one_asks_about() -> None:
    deny = ToolRule(tool="bash", permission="always_deny", when=prefix("git push"))
    own = [ToolRule(tool="bash", when=prefix("npm test"))]
    policy = Policy(own, [LevelledRule(deny, Level.DEPLOYMENT)], {"bash": BASH})
    verdict = policy.judge(BASH, "bash", Features(), arguments={"command": "npm test"}).verdict
    assert verdict is Verdict.ASK


RIDING = [
    "; rm -rf /", " && x", " || x", " | x", " & x", "&", "\nx", "\rx", "\r\nx", "\vx", "\fx", "\x85x",
    "\u2028x", "\u2029x", "\u00a0x", "\u3000x", " \\\nx", " > /x", " >/x", " >> x", " < x", " 2>x",
    " &> x", " >& x", " <<< x", " <<E", " <(x)", " >(x)", " $(x)", " `x`", " ${x}", " $x", " $((1))",
    " $'a'", ' $"a"', ' "$(x)"', ' "`x`"', " {a,b}", " *", " ?", " [a]", " ~", " ~x", " a=~", " #x",
    " !x", " (x)", ";", " ;;", " |& x", "\0", " a\0b", " '", ' "', " \\", "\u200b", " \u202ex",
]  # fmt: skip


@pytest.mark.parametrize("riding", RIDING)
def test_nothing_rides_on_an_allowed_command(riding: str) -> None:
    assert judged(f"git status{riding}", allowed=("git status",)) is Verdict.ASK


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        ("GIT_PAGER=x git status", "git status"),
        ("git -c core.pager=x status", "git status"),
        ("git --exec-path=. status", "git status"),
        ("git -c core.pager=x status", "git"),
        ("git --exec-path=. status", "git"),
        ("git --unheard-of status", "git"),
        ("./git status", "git status"),
        ("find . -exec rm {} ;", "find ."),
        ("find . -exec rm x ';'", "find ."),
        ("find . -okdir rm x \\;", "find ."),
        ("env rm -rf x", "env"),
        ("xargs rm", "xargs"),
        ("sudo rm x", "sudo"),
        ("bash -c 'rm x'", "bash"),
        ("sort --compress-prog=./x y", "sort"),
        ("git grep -Osh x", "git grep"),
        ("git diff --output=/x", "git diff"),
        ("git fetch --upload-pack x y", "git fetch"),
        ("tar --to-command=x -xf y", "tar"),
        ("tar cf a -T list", "tar"),
        ("man x --html=y", "man"),
        ("sftp h -oProxyCommand=x", "sftp"),
        ("sed -n 1p -e '1e x'", "sed -n 1p"),
        ("sed -n 1p -nf x", "sed -n 1p"),
        ("apt-get update -o APT::Update::Pre-Invoke::=x", "apt-get update"),
        ("dpkg -i x.deb --pre-invoke=y", "dpkg -i"),
        ("hg st --config hooks.pre-status=x", "hg st"),
        ("svn up --config-option=config:tunnels:ssh=x", "svn up"),
        ("make test SHELL=./x", "make test"),
        ("make test -f x", "make test"),
        ("make test --eval=x", "make test"),
        ("npm test --script-shell=./x", "npm test"),
        ("tar --to-c=x -xf y", "tar"),
        ("tar -cIx -f y z", "tar"),
        ("tar cIf x y z", "tar"),
        ("rsync -ae x y z:", "rsync"),
        ("git clone -qu x y z", "git clone"),
        ("git log --o=/x", "git log"),
        ("git reflog --output=/x", "git reflog"),
        ("git clone 'ext::sh -c id' d", "git clone"),
        ("git fetch ext::sh", "git"),
        ("git -C x ls-remote 'ext::id'", "git"),
        ("git push --repo=ext::id", "git push"),
        ("git diff-tree --output=/x a b", "git diff-tree"),
        ("git diff-index --outp=/x a", "git diff-index"),
        ("git diff-files --output=/x", "git"),
        ("git format-patch --output=/x a", "git format-patch"),
        ("git range-diff --output=/x a b c", "git range-diff"),
        ("git push --rec=./x y", "git push"),
        ("git fetch --up ./x y", "git fetch"),
        ("git archive --remote=. --exec=x HEAD", "git archive"),
        ("git rebase -x ./x", "git rebase"),
        ("git rebase -ix ./x", "git"),
        ("git submodule --quiet foreach ./x", "git submodule"),
        ("git -C x fetch --upload-pack=y .", "git -C x fetch"),
        ("go test -exec ./x", "go test"),
        ("go build --toolexec=./x", "go build"),
        ("go vet -vettool=./x", "go vet"),
        ("go build -ldflags=-extld=./x", "go build"),
        ("go env -w CC=./x", "go env"),
        ("go run x", "go"),
        ("cargo build --config build.rustc-wrapper=./x", "cargo build"),
        ("cargo +evil build", "cargo"),
        ("ip netns exec n ./x", "ip"),
        ("ip net e n ./x", "ip"),
        ("ip vrf exec v ./x", "ip"),
        ("ip netns exec n ./x", "ip netns"),
        ("ip -b list", "ip"),
        ("openssl req -engine ./x.so", "openssl req"),
        ("openssl engine dynamic -pre SO_PATH:x", "openssl"),
        ("openssl x509 --provider ./x", "openssl x509"),
        ("tcpdump -i any -z ./x", "tcpdump -i any"),
        ("tcpdump -vz ./x", "tcpdump"),
        ("nmap --script ./x h", "nmap"),
        ("nmap -script=./x h", "nmap"),
        ("nmap --resume x", "nmap"),
        ("pytest -p evil", "pytest"),
        ("pytest -qp evil", "pytest -q"),
        ("pytest -o addopts=x", "pytest"),
        ("pytest --rootdir x", "pytest"),
        ("python -m pytest -p evil", "python -m pytest"),
        ("poetry run pytest -p evil", "poetry run pytest"),
        ("gcc -wrapper ./x a.c", "gcc"),
        ("gcc-12 -fplugin=./x a.c", "gcc-12"),
        ("clang -Xclang -load a.c", "clang"),
        ("eslint --rulesdir x", "eslint"),
        ("mypy --config-file x", "mypy"),
        ("pylint --load-plugins x", "pylint"),
        ("pandoc --lua-filter=x a", "pandoc"),
        ("pdflatex -shell-escape x", "pdflatex"),
        ("rpm -qa --pipe x", "rpm -qa"),
        ("ssh-keygen -D ./x.so", "ssh-keygen"),
        ("ssh-agent ./x", "ssh-agent"),
        ("javac -processor x a.java", "javac"),
        ("gpg --photo-viewer ./x", "gpg"),
        ("kubectl get --kubeconfig x", "kubectl get"),
        ("helm install --post-renderer ./x", "helm install"),
        ("cmake -DCMAKE_C_COMPILER_LAUNCHER=./x .", "cmake"),
        ("less +!x y", "less"),
        ("less --lesskey-src=x y", "less"),
        ("man -C x y", "man"),
        ("awk 'BEGIN{system(\"x\")}'", "awk"),
        ("gawk -f x", "gawk"),
        ("sed 1e x", "sed"),
        ("sed 's/a/b/e' x", "sed"),
        ("python -c x", "python"),
        ("python3.11 -c x", "python3.11"),
        ("ruby -e x", "ruby"),
        ("make x", "make"),
        ("npm run x", "npm"),
        ("docker run x", "docker"),
        ("docker run x", "docker run"),
        ("docker compose exec a x", "docker compose"),
        ("kubectl exec x", "kubectl"),
        ("pip install x", "pip"),
        ("sqlite3 db '.shell x'", "sqlite3 db"),
        ("psql db -c '\\! x'", "psql db"),
        ("mysql db -e '\\! x'", "mysql db"),
        ("vim +!x y", "vim y"),
        ("vim.tiny -c x y", "vim.tiny y"),
        ("timeout 9 ./x", "timeout 9"),
        ("nice -n 5 ./x", "nice -n 5"),
        ("sudo -u a ./x", "sudo -u a"),
        ("sudo find . -exec ./x", "sudo find ."),
        ("env A=b ./x", "env A=b"),
        ("A=b ./x", "A=b"),
        ("A=b find . -exec ./x", "A=b find ."),
        ("timeout 9 find . -exec ./x", "timeout 9 find ."),
        ("perf record ./x", "perf record"),
        ("ssh h ./x", "ssh h"),
        ("git p", "git"),
        ("git bisect run ./x", "git"),
        ("npx eslint --rulesdir x", "npx eslint"),
        ("docker exec c sh -c ./x", "docker exec c"),
        ("docker exec c find . -exec ./x", "docker exec c find ."),
        ("kubectl exec p -- ./x", "kubectl exec p"),
        ("python -m pdb ./x", "python -m pdb"),
        (f"{'nice ' * 390}ls -l", f"{'nice ' * 390}ls"),
        (f"{'npx ' * 390}ls -l", f"{'npx ' * 390}ls"),
        (f"{'uv run ' * 250}ls -l", f"{'uv run ' * 250}ls"),
        # What is taken for the value of an option may be the program.
        ("docker exec -i c find /tmp -exec ./x", "docker exec -i c find /tmp"),
        ("sudo -b find /tmp -exec ./x", "sudo -b find /tmp"),
        ("env -i find /tmp -exec ./x", "env -i find /tmp"),
        ("timeout --foreground 9 find /tmp -exec ./x", "timeout --foreground 9 find /tmp"),
        # A shell reads these words once more.
        ("ssh h ls 'a;./x'", "ssh h ls"),
        ("eval ls 'a;./x'", "eval ls"),
        ("watch ls 'a|./x'", "watch ls"),
        ("docker compose -f a.yml exec web ./x", "docker compose"),
        ("docker compose exec web ./x", "docker compose exec"),
        ("docker container exec c ./x", "docker container exec"),
        ("docker-compose exec web ./x", "docker-compose exec web"),
        ("lxc exec c ./x", "lxc exec c"),
        ("uv tool run x", "uv tool run"),
        ("runuser bob -c ./x", "runuser bob"),
        ("python -m profile x.py", "python -m profile"),
        ("emacs a --eval x", "emacs a"),
        ("flake8 --config x", "flake8"),
        # Options by which a runner of tasks takes other files.
        ("rake test -f ./x", "rake test"),
        ("just test --shell ./x", "just test"),
        ("gulp build --gulpfile=./x", "gulp build"),
        ("grunt build --gruntfile x", "grunt build"),
        ("bazel test --run_under=./x", "bazel test"),
        ("stack build --exec ./x", "stack build"),
        ("mix test --require ./x", "mix test"),
        ("bun test --preload ./x", "bun test"),
        ("cabal build -w ./x", "cabal build"),
        ("dotnet test -p:CustomAfterMicrosoftCommonTargets=x", "dotnet test"),
        ("sphinx-build docs out -c x", "sphinx-build docs out"),
        ("sbt test 'eval x'", "sbt test"),
        ("coverage report --rcfile=x", "coverage report"),
        ("bundle install --gemfile x", "bundle install"),
        # Others that start programs.
        ("install -s --strip-program=./x a b", "install"),
        ("install -s --strip-prog ./x a b", "install -s"),
        ("nm --plugin ./x.so a", "nm"),
        ("ar --plugin=./x.so t a", "ar"),
        ("rustc -Clinker=./x a.rs", "rustc"),
        ("ghc -F -pgmF ./x a.hs", "ghc"),
        ("protoc --plugin=protoc-gen-a=./x a.proto", "protoc"),
        ("aria2c --on-download-complete=./x u", "aria2c"),
        ("yt-dlp --exec ./x u", "yt-dlp"),
        ("ansible-playbook site.yml -i ./x", "ansible-playbook site.yml"),
        ("ansible-playbook site.yml --vault-password-file ./x", "ansible-playbook site.yml"),
        ("iptables -L --modprobe=./x", "iptables -L"),
        ("restic backup . --password-command ./x", "restic backup"),
        ("rclone ls r: --password-command ./x", "rclone ls"),
        ("cppcheck --addon=./x.py a.c", "cppcheck"),
        ("clang-tidy -load ./x.so a.c", "clang-tidy"),
        ("ssh-copy-id -o ProxyCommand=./x h", "ssh-copy-id"),
        ("sox '|./x' a.wav", "sox"),
        ("pytest --tx popen//python=./x", "pytest"),
        ("ccache ./x", "ccache"),
        ("eatmydata ./x", "eatmydata"),
        ("cross-env A=b ./x", "cross-env"),
        ("nodemon ./x", "nodemon"),
        ("aws-vault exec p -- ./x", "aws-vault exec p"),
        ("apptainer exec i ./x", "apptainer exec i"),
        ("mpirun -n 2 ./x", "mpirun -n 2"),
        ("run0 ./x", "run0"),
        ("ifne ./x", "ifne"),
        ("pee ./x", "pee"),
        ("torify ./x", "torify"),
        ("yash ./x", "yash"),
        ("ldd ./x", "ldd"),
        ("rsync -a x h: -M--rsync-path=./x", "rsync -a"),
        ("rsync --daemon --config=./x", "rsync"),
        ("bsdtar xf a --use-compress-program ./x", "bsdtar"),
        ("hg pull --ssh ./x", "hg pull"),
        ("hg push --remotecmd=./x", "hg push"),
        ("svn log --config-dir x", "svn log"),
        ("kubectl config set-credentials u --exec-command=./x", "kubectl config"),
        ("gcloud compute ssh h --command ./x", "gcloud"),
        ("gcloud compute ssh h -- ./x", "gcloud compute ssh h"),
        ("az vm run-command invoke --scripts ./x", "az vm"),
        ("borg create --rsh ./x a b", "borg create"),
        ("duplicity a b --ssh-options=-oProxyCommand=./x", "duplicity"),
        ("unison a b -sshcmd ./x", "unison"),
        ("sshfs h: d -o ssh_command=./x", "sshfs"),
        ("mutt -e x", "mutt"),
        ("sdiff a b --diff-program=./x", "sdiff"),
        ("ugrep --filter=pdf:./x y", "ugrep"),
        ("gs -sOutputFile=%pipe%./x a", "gs"),
        ("systemctl edit x", "systemctl"),
        ("pacman -S x --hookdir y", "pacman -S"),
        ("objdump -d a --plugin ./x.so", "objdump -d"),
        ("gawk '{print}' -D x", "gawk '{print}'"),
        ("git instaweb --browser ./x", "git instaweb"),
        ("yq -n --security-enable-system-operator 'system(\"./x\")'", "yq"),
        ("go fix -fixtool=./x ./...", "go fix"),
        ("mypy a.py --install-types --non-interactive", "mypy"),
        ("eslint --inspect-config", "eslint"),
        ("eslint --init", "eslint"),
        ("op run -- ./x", "op"),
        ("sops exec-env secrets.yaml './x'", "sops"),
        ("tsh ssh host ./x", "tsh"),
        ("pssh -h hosts ./x", "pssh"),
        ("caffeinate ./x", "caffeinate"),
        ("git svn clone u --authors-prog=./x", "git svn"),
        # Others that read, and write what another program may start.
        ("find . -delete", "find"),
        ("find . -name x -fprintf Makefile y", "find . -name x"),
        ("printf x%n PATH", "printf"),
        ("sort x -o Makefile", "sort"),
        ("sort -uoMakefile x", "sort -u"),
        ("shuf --outp=Makefile x", "shuf"),
        ("tree -o Makefile", "tree"),
        ("less -NOMakefile x", "less"),
        ("sed -n 1p x -i", "sed -n 1p"),
        ("sed -n 1p x --in-place=.y", "sed -n 1p"),
        ("gawk '{print}' x -oMakefile", "gawk '{print}'"),
        ("date -us 2020", "date"),
        ("tcpdump -i any -w Makefile", "tcpdump -i any"),
        ("curl u -o Makefile", "curl u"),
        ("curl -sSfo Makefile u", "curl"),
        ("curl u --cookie-jar=x", "curl u"),
        ("curl -sOXPOST u", "curl"),
        ("date -uIs -s 2020", "date"),
        # What is harmless below one subcommand is not below another, or where that cannot be told.
        ("hg extdiff -p ./x", "hg extdiff"),
        ("hg extd -p ./x", "hg extd"),
        ("hg -R . extdiff -p ./x", "hg -R . extdiff"),
        ("hg merge -t ./x", "hg merge"),
        ("hg incoming -pe ./x", "hg incoming"),
        ("hg log --config extensions.x=./x.py -p", "hg log"),
        ("brew sh -c ./x", "brew"),
        ("brew ruby x.rb", "brew"),
        ("brew bundle exec ./x", "brew bundle"),
        ("brew bundle", "brew"),
        ("systemctl --user edit x", "systemctl"),
        ("systemctl -t service edit x", "systemctl"),
        ("gcloud alpha compute tpus tpu-vm ssh h", "gcloud"),
        ("gcloud compute scp a h: --scp-flag=-oProxyCommand=./x", "gcloud compute scp"),
        ("gcloud compute ssh h --flags-file=x", "gcloud compute ssh h"),
        ("gcc -DA -B. a.c", "gcc"),
        ("pytest -qpkx", "pytest"),
        # A shell takes the line apart once more, at other places.
        ("ssh h find . 'x -delete'", "ssh h find ."),
        ("ssh h find . '\"-delete\"'", "ssh h find ."),
        ("ssh h find . '\\-delete'", "ssh h find ."),
        ("ssh h 'find .' -delete", "ssh h 'find .'"),
        # Or the next one does, or none.
        ("oc rsh p find . -name '\"' -delete -name '\"'", "oc rsh p find ."),
        ("entr find . -name '\"' -delete -name '\"'", "entr find ."),
        (
            "sshpass -p x ssh h find . -name '\\\"' -delete -name '\\\"'",
            "sshpass -p x ssh h find .",
        ),
        ("timeout 9 ssh h find . 'x -delete'", "timeout 9 ssh h find ."),
        ("watch find . 'x -exec ./x {} +'", "watch find ."),
        ("eval sort x '-o Makefile'", "eval sort x"),
        ("vagrant ssh -- ls ';./x'", "vagrant ssh -- ls"),
        ("adb shell ls '|./x'", "adb shell ls"),
        ("heroku run ls ';./x'", "heroku run ls"),
        ("gcloud compute ssh h -- ls ';./x'", "gcloud compute ssh h -- ls"),
        ("gcloud compute ssh h -- find . -delete", "gcloud compute ssh h -- find ."),
        ("vagrant ssh default -- find . -delete", "vagrant ssh default -- find ."),
        ("vagrant ssh default -c ./x", "vagrant ssh default"),
        ("docker-machine ssh m find . -delete", "docker-machine ssh m find ."),
        ("limactl shell m find . -delete", "limactl shell m find ."),
        ("multipass exec m -- find . -delete", "multipass exec m -- find ."),
        # Options, and their values, may stand before what runs others.
        ("kubectl -n a exec p -- ./x", "kubectl -n a exec p"),
        ("kubectl -n a exec p -- find . -delete", "kubectl -n a exec p -- find ."),
        ("docker -c a exec c find . -delete", "docker -c a exec c find ."),
        ("docker compose -f a.yml exec web ./x", "docker compose -f a.yml exec web"),
        ("npm --prefix a run deploy", "npm --prefix a run"),
        ("npm --prefix a x find . -delete", "npm --prefix a x find ."),
        # Their values may be called like such a subcommand.
        ("npm --prefix x run deploy", "npm --prefix x run"),
        ("uv --directory x run find . -delete", "uv --directory x run find ."),
        ("docker -c ssh run img find . -delete", "docker -c ssh run img find ."),
        ("docker -c x compose run w find . -delete", "docker -c x compose run w find ."),
        ("poetry -C a run ./x", "poetry -C a run"),
        ("conda -q run -n e ./x", "conda -q run -n e"),
        # What is taken for the value of an option may be a program that writes.
        ("timeout --foreground 9 tree /tmp -o Makefile", "timeout --foreground 9 tree /tmp"),
        ("sudo -b shuf x -o Makefile", "sudo -b shuf x"),
        ("docker exec -i c tree /tmp -o Makefile", "docker exec -i c tree /tmp"),
        # Each thing that is given is done.
        ("make test deploy", "make test"),
        ("make test -k deploy", "make test"),
        ("make test -j deploy", "make test"),
        ("rake test -j deploy", "rake test"),
        ("turbo run build deploy", "turbo run build"),
        ("python setup.py test upload", "python setup.py test"),
        ("rake test deploy", "rake test"),
        ("just test deploy", "just test"),
        ("mvn test deploy", "mvn test"),
        ("mvn test -q deploy", "mvn test"),
        ("gradle test publish", "gradle test"),
        ("gradle test --info publish", "gradle test"),
        ("ninja all install", "ninja all"),
        # One hyphen does as well as two.
        ("npm test -script-shell=./x", "npm test"),
        ("npm test -script-shell ./x", "npm test"),
        ("npm run build ---script-shell=./x", "npm run build"),
        ("pnpm test -shell-emulator ./x", "pnpm test"),
        ("npm repo x --browser=./x", "npm repo"),
        ("npm test --node-gyp=./x", "npm test"),
        # Behind a program on the line options are its own.
        ("perl -e 'print 1' -e ';system(x)'", "perl -e 'print 1'"),
        ("perl -e 'print 1' -Mevil", "perl -e 'print 1'"),
        ("ruby -e 'p 1' -r ./x", "ruby -e 'p 1'"),
        ("node -e x --require ./x", "node -e x"),
        # Names that are written, given or read by a shell elsewhere.
        ("uniq x Makefile", "uniq"),
        ("uniq -c x Makefile", "uniq -c x"),
        ("uniq - -- Makefile", "uniq"),
        ("xxd -r x Makefile", "xxd"),
        ("python -m json.tool x Makefile", "python -m json.tool"),
        ("hostname x", "hostname"),
        ("scp -O 'h:x;./x' y", "scp"),
        ("rsync --old-args 'h:x|./x' y", "rsync"),
        ("convert '|./x' a.png", "convert"),
        # What only shows changes by a word behind.
        ("git remote -v remove origin", "git remote -v"),
        ("git branch -v -D x", "git branch -v"),
        ("git branch -vv --edit-description", "git branch -vv"),
        ("git apply --check --apply x", "git apply --check"),
        ("git apply --check --build-fake-ancestor=Makefile x", "git apply --check"),
        ("git branch -v new", "git branch -v"),
        ("git tag --sort=x new", "git tag --sort=x"),
        ("tar tf a --volno-file=Makefile", "tar tf a"),
        ("history -w Makefile", "history"),
        ("git config user.name x", "git config user.name"),
        ("git config --global core.pager ./x", "git config --global core.pager"),
        ("git fast-export --all --export-marks=Makefile", "git fast-export"),
        ("tar tf a --index-file=Makefile", "tar tf"),
        ("tar cf a x --remove-files", "tar cf"),
        ("pip list --log Makefile", "pip list"),
        ("kubectl get pods --profile=cpu --profile-output=Makefile", "kubectl get"),
        ("kubectl kustomize . --enable-helm --helm-command=./x", "kubectl kustomize"),
        ("curl u -w '%output{Makefile}x'", "curl u"),
        ("curl u --expand-output '{{x}}'", "curl u"),
        ("tree -RL 1 -H .", "tree"),
        ("yq -s .a x", "yq"),
        ("journalctl --vacuum-time=1s", "journalctl"),
        # Others that start programs, or change what later words mean.
        ("gtar cIf ./x y z", "gtar"),
        ("gcc -Wp,-fplugin=./x.so a.c", "gcc"),
        ("clang --cuda-path=./x a.cu", "clang"),
        ("mvn test --define jvm=./x", "mvn test"),
        ("mvn test -define jvm=./x", "mvn test"),
        ("mvn test --global-settings ./x", "mvn test"),
        ("gradle test -g ./x", "gradle test"),
        ("gradle test --system-prop a=b", "gradle test"),
        ("ninja all -t clean", "ninja all"),
        ("at now -f ./x", "at now"),
        ("dc -e '!x'", "dc"),
        ("rename 's/a/system(1)/e' x", "rename"),
        ("gnuplot -e 'system 1'", "gnuplot"),
        ("duckdb a '.shell x'", "duckdb a"),
        ("luajit -e x", "luajit"),
        ("jobs -x ./x", "jobs"),
        ("compgen -C ./x", "compgen"),
        ("export A LD_PRELOAD=./x", "export A"),
        ("unset A PATH", "unset A"),
    ],
)
def test_an_allowed_command_starts_no_other(command: str, allowed: str) -> None:
    assert judged(command, allowed=(allowed,)) is Verdict.ASK


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        ("git -C x status -s", "git"),
        ("git -C x fetch -p", "git -C x fetch"),
        ("git log -p --oneline", "git log"),
        ("git rebase main", "git rebase"),
        ("tar xzf a", "tar"),
        ("timeout 9 ls x", "timeout 9 ls"),
        ("git push -u origin main", "git push"),
        ("git push --set-upstream origin main", "git push"),
        ("git fetch -u origin", "git fetch"),
        ("git clone https://a.example/x d", "git clone"),
        ("git clone ext::x d", "git clone ext::x"),
        ("git commit -m 'Mend a::b'", "git"),
        ("git grep a::b", "git grep"),
        ("git diff-tree -p a b", "git diff-tree"),
        ("go test -run TestX ./...", "go test"),
        ("cargo build --release --color never", "cargo build"),
        ("ip addr show dev eth0", "ip addr"),
        ("ip link show", "ip"),
        ("openssl x509 -in a -noout", "openssl x509"),
        ("tcpdump -ni any port 80", "tcpdump"),
        ("nmap -sS -p 80 h", "nmap"),
        ("pytest -q -x tests/a.py", "pytest"),
        ("python -m pytest -q tests", "python -m pytest"),
        ("python3 -m pytest -q tests", "python3 -m pytest"),
        ("python3 -u x.py -v", "python3 -u x.py"),
        ("npx -y eslint --fix x", "npx -y eslint"),
        ("python3.11 manage.py test", "python3.11 manage.py"),
        ("uv run pytest -q", "uv run pytest"),
        ("gcc -O2 -Wall -o a a.c", "gcc"),
        ("sed -n 1p x", "sed -n 1p"),
        ("make test", "make test"),
        ("npm run build --if-present", "npm run build"),
        ("docker compose ps -a", "docker compose ps"),
        ("docker exec c ls -l", "docker exec c ls"),
        ("npx eslint --fix x", "npx eslint"),
        ("kubectl get pods -n x", "kubectl get"),
        ("sudo -n git status -s", "sudo -n git status"),
        ("sudo ls -l", "sudo ls"),
        ("ssh h ls -l", "ssh h ls"),
        ("bash -c ls x", "bash -c ls"),
        ("bash run.sh x", "bash run.sh"),
        ("A=b ls -l", "A=b ls"),
        ("git bisect good", "git bisect"),
        ("less x", "less"),
        ("man tar", "man"),
        ("sqlite3 db", "sqlite3 db"),
        ("rake test", "rake test"),
        ("just test", "just test"),
        ("terraform plan -out plan", "terraform plan"),
        ("gh pr list --limit 3", "gh pr list"),
        ("composer install --no-dev", "composer install"),
        ("coverage report -m", "coverage report"),
        ("ruby x.rb -v", "ruby x.rb"),
        ("node x.js --watch", "node x.js"),
        ("install -m 644 a b", "install"),
        ("nm -C a", "nm"),
        ("rustc --edition 2021 a.rs", "rustc"),
        ("ccache gcc -O2 a.c", "ccache gcc"),
        ("sox a.wav b.mp3", "sox"),
        ("find . -name x -type f", "find"),
        ("sort -u -k 2 x", "sort"),
        ("curl -sSfL https://a.example/x", "curl"),
        ("curl u -o page", "curl u -o page"),
        ("sed -n 1p x -E", "sed -n 1p"),
        ("tree -L 2 x", "tree"),
        ("hg log -l 3", "hg log"),
        ("hg log -Gp", "hg log"),
        ("hg diff -p x", "hg diff"),
        ("hg status -t mardu", "hg status"),
        ("hg commit -e", "hg commit"),
        ("hg incoming -p", "hg incoming"),
        ("date -Iseconds", "date"),
        ("date -uIseconds", "date"),
        ("date -d yesterdays", "date"),
        ("date -rsums", "date"),
        ("brew install shellcheck", "brew"),
        ("brew install ruby", "brew install"),
        ("systemctl status editor.service", "systemctl"),
        ("systemctl status edit", "systemctl"),
        ("gcloud run deploy --source .", "gcloud run"),
        ("gcloud compute instances describe sshproxy", "gcloud"),
        ("curl -XPOST u", "curl"),
        ("curl -sSXPOST -HOrigin:x u", "curl"),
        ("gcc -DDEBUG -Wall -LB a.c", "gcc"),
        ("pytest -rsxp -ktest_post", "pytest"),
        ("rsync -av a b", "rsync"),
        ("gcloud compute instances list", "gcloud compute"),
        ("systemctl status x", "systemctl"),
        ("ssh h 'ls -l' x", "ssh h 'ls -l'"),
        ("watch -n 5 ls -l x", "watch -n 5 ls"),
        ("vagrant ssh -- ls -l", "vagrant ssh -- ls"),
        ("kubectl -n a exec p -- ls -l", "kubectl -n a exec p -- ls"),
        ("kubectl -n a get pods -o wide", "kubectl -n a get pods"),
        ("docker compose -f a.yml exec web ls -l", "docker compose -f a.yml exec web ls"),
        ("docker compose -f a.yml ps -a", "docker compose -f a.yml ps"),
        ("npm --prefix a run build --if-present", "npm --prefix a run build"),
        ("python manage.py run --fast", "python manage.py run"),
        ("heroku run ls -l", "heroku run ls"),
        ("make test -k -j 4", "make test"),
        ("gradle test --tests Foo", "gradle test"),
        ("mvn test -q -pl core", "mvn test"),
        ("perl -e 'print 1' x", "perl -e 'print 1'"),
        ("node x.js --require x", "node x.js"),
        ("uniq -c x", "uniq"),
        ("uniq -c", "uniq"),
        ("xxd x", "xxd"),
        ("hostname -f", "hostname"),
        ("python -m json.tool x", "python -m json.tool"),
        ("scp -r h:x y", "scp"),
        ("convert a.png b.jpg", "convert"),
        ("git remote -v show origin", "git remote"),
        ("git remote add x y", "git remote"),
        ("git branch -v --sort=x", "git branch -v"),
        ("git branch -a", "git branch -a"),
        ("git branch --list x", "git branch --list"),
        ("git branch --merged main", "git branch --merged"),
        ("git tag -n x", "git tag -n"),
        ("history 20", "history"),
        ("turbo run build --filter web", "turbo run build"),
        ("vagrant ssh default -- ls -l", "vagrant ssh default -- ls"),
        ("gcloud run services list --limit 3", "gcloud run services list"),
        ("ssh h grep 'a b' x", "ssh h grep"),
        ("oc rsh p grep 'a b' x", "oc rsh p grep"),
        ("git branch -D x", "git branch"),
        ("git apply x", "git apply"),
        ("git apply --check x", "git apply --check"),
        ("git config --get user.name", "git config --get"),
        ("git config user.name x", "git config"),
        ("git tag -l x", "git tag -l"),
        ("tar tf a", "tar tf"),
        ("pip list --outdated", "pip list"),
        ("export A=b", "export A=b"),
    ],
)
def test_what_an_allowing_rule_names_runs(command: str, allowed: str) -> None:
    assert judged(command, allowed=(allowed,)) is Verdict.ALLOW


# --- any disguise ---------------------------------------------------------------------------------

Disguise = Callable[[str], str]


def _quoted_parts(command: str) -> str:
    return " ".join(f"{word[0]}''{word[1:]}" for word in command.split(" "))


DISGUISES: list[Disguise] = [
    _quoted_parts,
    lambda c: f"sh -c {subprocess.list2cmdline([c])}",
    lambda c: "bash -c '" + c.replace("'", "'\\''") + "'",
    lambda c: f"ls; {c}",
    lambda c: f"{c} &",
    lambda c: f"( {c} )",
    lambda c: f"{{ {c}; }}",
    lambda c: f"$( {c} )",
    lambda c: f"`{c}`",
    lambda c: f"env {c}",
    lambda c: f"env -i A=b {c}",
    lambda c: f"sudo -n {c}",
    lambda c: f"nice -n 5 timeout 9 {c}",
    lambda c: f"nohup {c}",
    lambda c: f"time {c}",
    lambda c: f"command {c}",
    lambda c: f"exec {c}",
    lambda c: f"eval {c}",
    lambda c: f"if true; then {c}; fi",
    lambda c: f"for x in 1; do {c}; done",
    lambda c: f"f() {{ {c}; }}; f",
    lambda c: f"echo x | xargs {c}",
    lambda c: f"find . -maxdepth 0 -exec {c} ';'",
    lambda c: f"sh <<'END'\n{c}\nEND",
    lambda c: f"echo {c} | sh",
    lambda c: c.replace(" ", "\t"),
    lambda c: c.replace(" ", " \\\n", 1),
    lambda c: c.replace(" ", "${IFS}", 1),
    lambda c: c.replace(" ", " $empty ", 1),
    lambda c: c.replace(" ", " 2>/dev/null ", 1),
    lambda c: c.replace("p", "$(echo p)", 1),
    lambda c: c.replace("p", "${p:-p}", 1),
    lambda c: c.replace("p", "[p]", 1),
    lambda c: c.replace("p", "\\p", 1),
    lambda c: c.replace("p", "$'\\x70'", 1),
    lambda c: c.replace("u", "{u,}", 1),
    lambda c: c.replace("git", "/usr/bin/git", 1),
    lambda c: c.replace("git", "git -C .", 1),
    lambda c: c.replace("git", "git --no-pager -c x.y=z", 1),
    lambda c: c.replace("git", "busybox git", 1),
    lambda c: c.replace("git ", "x=git; $x ", 1),
    lambda c: "python3 -c 'import os;os.system(\"" + c.replace(" ", "\"+chr(32)+\"") + "\")'",
    lambda c: f"echo {c.encode().hex()} | xxd -r -p | sh",
    lambda c: f"ssh localhost {c}",
    lambda c: f"A=b {c}",
    lambda c: f"! {c}",
    lambda c: f"alias x='{c}'; x",
    lambda c: f"trap '{c}' EXIT",
    lambda c: f"cat <({c})",
    lambda c: f"echo x > f && {c}",
]  # fmt: skip


@given(st.lists(st.sampled_from(DISGUISES), max_size=5))
@example([])
def test_no_disguise_makes_a_denied_command_run(disguises: list[Disguise]) -> None:
    command = "git push origin main"
    for disguise in disguises:
        command = disguise(command)
    assert judged(command, "git push") is not Verdict.ALLOW
    assert judged(command, "git push", allowed=("git", "sh", "bash", "env", "echo", "ls")) is not (
        Verdict.ALLOW
    )


SIGNS = st.text(
    alphabet=string.ascii_letters + " \t\n'\"\\$`;|&<>(){}[]*?~#!=-./@%:,^0\u00a0ü", max_size=40
)


@given(SIGNS)
def test_what_is_read_is_what_a_shell_reads(text: str) -> None:
    """Of a line that can be read, with nothing left to expand, the words are those that bash makes of it.
    Nothing of it runs: each command is given to `printf` in place of its program."""
    words = simple_command(text)
    if words is None or "\0" in text:
        return
    told = subprocess.run(
        ["/bin/bash", "--norc", "-c", f"printf '%s\\0' {text}"],
        capture_output=True, env={"LC_ALL": "C.UTF-8"}, check=True, timeout=PATIENCE,
    )  # fmt: skip
    assert tuple(told.stdout.decode().split("\0")[:-1]) == words


BEFORE = (
    "",
    "a",
    "a1",
    "2",
    "12",
    "3000000000",
    "99999999999999999999",
    "'1'",
    "{v}",
    "$v",
    "a ",
    "2 ",
)
REDIRECTIONS = (
    ">",
    ">>",
    ">&",
    ">|",
    "<",
    "<&",
    "<>",
    "&>",
    "&>>",
    "<<<",
    ">&-",
    "<&-",
    ">&1>",
    ">>&",
    "&>|",
)
TARGETS = ("w", "1w", "1", "1-", "1-w", "-", "-w", "-1", "-2>w", "->w", "'-'w", "\"-w\"", "-''", "''-w",
           "\\-w", "-\\w", "#w", "-#w", "3000000000", "1''")  # fmt: skip
AFTER = ("", " push", ">w push", "\tpu''sh")
TOLD = r"""
exec 3<>/dev/null 12<>/dev/null
probe() { printf '%s\0' "$#" "$@" >>told; }
touch -- w 1w 1 1- 1-w -w -1 - 3000000000 '#w' -2
while IFS= read -r -d '' text <&9; do
    printf 'line\0' >>told
    eval "probe $text" 2>/dev/null
done 9<texts
"""


def test_what_stands_around_a_redirection_is_what_a_shell_reads(tmp_path: Path) -> None:
    """In every form that can be read, the words of the command are those that bash hands to it."""
    read_here: list[tuple[str, list[tuple[Word, ...]]]] = []
    forms = itertools.product(BEFORE, REDIRECTIONS, [""], TARGETS, [" push"])
    more = itertools.product(["", "a "], REDIRECTIONS, ["", " "], TARGETS, AFTER)
    for parts in dict.fromkeys((*forms, *more)):
        commands = read(f"probe {''.join(parts)}")
        if commands is not None and all(None not in each.words for each in commands):
            own = [each.words[1:] for each in commands if each.words[0] == "probe"]
            read_here.append(("".join(parts), own))
    (tmp_path / "texts").write_text("".join(f"{text}\0" for text, _words in read_here))
    subprocess.run(
        ["/bin/bash", "--norc", "-c", TOLD], cwd=tmp_path, check=True, timeout=PATIENCE,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    told = (tmp_path / "told").read_text().split("line\0")[1:]
    assert len(told) == len(read_here)
    for (text, own), one in zip(read_here, told, strict=True):
        if one:  # it was a command to bash as well
            count, *words = one.split("\0")[:-1]
            assert (text, [tuple(words)], count) == (text, own, str(len(words)))
    assert sum(map(bool, told)) > 1_000


@given(st.text(max_size=200) | SIGNS)
def test_any_text_is_read_without_a_fault(text: str) -> None:
    read(text)
    assert occurs(text, ("git", "push")) in Match


@pytest.mark.parametrize(
    "unit",
    ["git ", "git -p ", "'", '"', "\\", "$(", "`", "((", "a'b\"", '"$x', "${a", "git -C git ", "1", "<<",
     '"\\"',     "'\"", "\\\n", "sh -c '", "| ", "; "],
)  # fmt: skip
def test_a_long_command_takes_no_longer_than_its_length_and_a_longer_one_is_not_read(
    unit: str,
) -> None:
    """Minutes would show a reading whose time grows faster than the text."""
    text = (unit * LONGEST)[:LONGEST]
    occurs(text, ("git", "push"))
    prefix("git push").surely({"command": text})
    longer = f"git status {unit * LONGEST * 10}"
    assert occurs(longer, ("git", "push")) is Match.MAYBE
    assert not prefix("git status").surely({"command": longer})


def test_an_argument_that_is_left_out_may_be_the_denied_one() -> None:
    """A search without a folder searches the denied one as well."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    search = Tool("grep", "Searches.", schema, lambda _c, _g: "", Effect.READ)
    deny = ToolRule(
        tool="grep", permission="always_deny", when=When(argument="path", path="secrets/**")
    )
    policy = Policy([ToolRule(tool="*")], [LevelledRule(deny, Level.AGENT)], {"grep": search})

    def verdict(**given: str) -> Verdict:
        return policy.judge(search, "grep", Features(), arguments=given).verdict

    assert verdict() is Verdict.ASK
    assert verdict(path="src") is Verdict.ALLOW
    assert verdict(path="secrets/x") is Verdict.DENY
