"""Recordings: what of a HAR file or an access log becomes a workload, and what is left out with a count."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import shutil
import subprocess
import time
import zipfile

import pytest

from bench.errors import BenchError
from bench.measure.run import recordings, replay
from bench.measure.run.recorded_secrets import has_secret
from bench.measure.run.workload import Workload

LINE = '192.0.2.1 - - [22/Nov/2026:12:00:{second:02} +0000] "{request}" {status} 512 "-" "Mozilla/5.0"\n'
AT, CLIENT = "[22/Nov/2026:12:00:01 +0000]", "203.0.113.7 - -"
# As servers write them: `{}` is the request line.
FORMATS = {
    "common": f'{CLIENT} {AT} "{{}}" 200 512',
    "combined": f'{CLIENT} {AT} "{{}}" 200 512 "https://x.example/?a=%22" "Mozilla/5.0 \\"odd\\""',
    "nginx's main": f'{CLIENT} {AT} "{{}}" 200 512 "-" "Mozilla/5.0" "198.51.100.2, 10.0.0.1"',
    "ingress-nginx": f'{CLIENT} {AT} "{{}}" 200 512 "-" "x" 543 0.002 [default-app-80] [] 10.0.0.2:80 5 0.002 200 8f',
    "the kit's nginx": f'{CLIENT} {AT} "{{}}" 200 512 "-" "Mozilla/5.0" www.example.com 8f0e 0.010 0.009 "unix:/run/a"',
    "the kit's haproxy": '203.0.113.7 - - [22/Nov/2026:12:00:01.123] "{}" 200 512 - "Mozilla/5.0" a.example 8f-0e 9',
    "haproxy's own": "haproxy[9]: 10.0.1.2:33317 [06/Feb/2026:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750"
    ' - - ---- 1/1/1/1/0 0/0 {{1wt.eu}} {{}} "{}"',
    "virtual hosts": f'www.example.com:443 {CLIENT} {AT} "{{}}" 200 512 "-" "Mozilla/5.0"',
    "host after address": f'203.0.113.7 www.example.com - {AT} "{{}}" 200 512 "-" "Mozilla/5.0"',
    "an AWS balancer": "https 2026-11-22T12:00:01.186641Z app/lb/50dc 192.0.2.1:2817 10.0.0.1:80 0.08 0.04 0.03 200 200"
    ' 0 57 "{}" "curl/7.46.0" ECDHE TLSv1.2',
    "uWSGI's own": "[pid: 81|app: 0|req: 7/9] 192.0.2.1 (jane) {{36 vars in 611 bytes}} [Thu Nov  5 12:00:01 2026] {}"
    " => generated 512 bytes in 3 msecs (HTTP/1.1 200) 3 headers in 98 bytes (1 switches on core 0)",
    "granian's": '[2026-11-22 12:00:01 +0000] 192.0.2.1 - "{}" 200 1.332',
    "daphne's": '192.0.2.1:38402 - - [22/Nov/2026:12:00:01] "{}" 200 512',
    "hypercorn's": f'[2026-11-22 12:00:01 +0000] [9] [INFO] {CLIENT} {AT} "{{}}" 200 512',
    "runserver": '[22/Nov/2026 12:00:01] "{}" 200 512',
    "Traefik's": f'{CLIENT} {AT} "{{}}" 200 512 "-" "-" 1 "app@docker" "http://10.0.0.2:80" 12ms',
    "a classic AWS balancer": "2026-11-22T12:00:01.186641Z web 192.0.2.1:2817 10.0.0.1:80 0.0 0.0 0.0 200 200 0 57"
    ' "{}" "curl/7.38.0" - -',
    "S3": f'79a59d bucket {AT} 192.0.2.3 79a59d 3E57427F3 REST.GET.OBJECT a/b "{{}}" 200 - 113 - 7 - "-" "S3" -',
    "Envoy's": '[2026-11-22T12:00:01.123Z] "{}" 200 - 0 57 3 2 "192.0.2.1" "curl/7.88"'
    ' "8f0e0000-0000-4000-8000-000000000001" "a.example" "10.0.0.2:80"',
    "Istio's": '[2026-11-22T12:00:01.123Z] "{}" 200 - via_upstream - "-" 0 57 3 2 "-" "curl/7.88"'
    ' "8f0e0000-0000-4000-8000-000000000001" "a.example" "10.0.0.2:80" inbound|80|| 127.0.0.6:1 10.0.0.2:80 - default',
    "status first": f'{CLIENT} {AT} 200 0.001 "{{}}" 512 "-" "Mozilla/5.0"',
    "status as a pair": f'remote=192.0.2.3 {AT} status=200 host=www.example.com request="{{}}" 404 "-"',
    "logfmt": 'time=2026-11-22T12:00:01Z level=info msg=handled request="{}" status=200 bytes=57',
    "time behind": f'192.0.2.3 "{{}}" 200 512 {AT}',
    "in a pod": f'2026-11-22T12:00:01.123456789Z stdout F {CLIENT} {AT} "{{}}" 200 512 "-" "Mozilla/5.0"',
    "of Compose": f'web-1  | {CLIENT} {AT} "{{}}" 200 512 "-" "Mozilla/5.0"',
    "of kubectl": f'[pod/web-1/app] {CLIENT} {AT} "{{}}" 200 512 "-" "Mozilla/5.0"',
    "of Compose with times": f'web-1  | 2026-11-22T12:00:01.1Z {CLIENT} {AT} "{{}}" 200 512 "-" "Mozilla/5.0"',
    "behind rsyslog": f'2026-11-22T12:00:01.1+00:00 web1 nginx: {CLIENT} {AT} "{{}}" 200 512 "-" "Mozilla/5.0"',
    "RFC 5424": f'<190>1 2026-11-22T12:00:01Z web1 nginx 200 - - {CLIENT} {AT} "{{}}" 200 512 "-" "Mozilla/5.0"',
    "uvicorn's in the journal": 'Nov 22 12:00:01 web1 uvicorn[812]: INFO:     192.0.2.1:50824 - "{}" 200 OK',
    "uvicorn's with a time": '2026-11-22 12:00:01,123 INFO uvicorn.access 192.0.2.1:50824 - "{}" 200',
    "odd agents at Istio": '[2026-11-22T12:00:01.123Z] "{}" 200 - via_upstream - "-" 0 57 -1 - "-" "odd \\"agent\\""'
    ' "8f0e-own-id" "a.example" "10.0.0.2:80" inbound|80|| 127.0.0.6:1 10.0.0.2:80 - default',
    "uvicorn's in colours": '\x1b[32mINFO\x1b[0m:     [2001:db8::1]:5 - "\x1b[1m{}\x1b[0m" \x1b[32m200 OK\x1b[0m',
    "a number first": '1795867201.123 203.0.113.7 "{}" 200 512',
    "Squid's": "1795867201.123    230 2001:db8::1 TCP_MISS/200 512 {} - HIER_DIRECT/10.0.0.1 text/html",
    "status by another name": 'time="2026-11-22T12:00:01Z" msg=handled request="{}" status_code=200 duration=-',
    "behind syslog": f'Nov 22 12:00:01 web1 nginx: 2001:db8::1 - Jane Doe {AT} "{{}}" 200 512 "-" "-"',
}


def entry(url, second=0, method="GET", status=200):
    return {
        "startedDateTime": f"2026-11-22T12:00:{second:02}.000Z",
        "request": {"method": method, "url": url},
        "response": {"status": status},
    }


def har(tmp_path, *entries):
    path = tmp_path / "visit.har"
    path.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}))
    return path


def log(tmp_path, *requests):
    path = tmp_path / "access.log"
    path.write_text(
        "".join(LINE.format(second=i, request=it, status=status) for i, (it, status) in enumerate(requests))
    )
    return path


def test_a_har_file_gives_the_gets_to_the_host_with_most_entries(tmp_path):
    recording = recordings.har(
        har(
            tmp_path,
            *(entry(f"data:image/png;base64,{i}") for i in range(9)),
            entry("http://example.com/", status=301),
            entry("https://A.example/"),
            entry("https://cdn.example/x.js", 1),
            entry("https://a.example:443/cart?page=2", 3),
            entry("https://a.example/cart", 4, method="POST", status=302),
        )
    )
    assert (recording.paths, recording.times_s) == (("/", "/cart?page=2"), (0.0, 3.0))
    assert recording.notes == ("left out of visit.har: requests to other hosts (11), requests that are no GET (1)",)


def test_odd_entries_of_a_har_file_are_left_out_with_a_count(tmp_path):
    good = entry("https://a.example/")
    odd = [
        {key: value for key, value in good.items() if key != "response"},
        entry("https://a.example/", status=None),
        entry("https://a.example/", status=""),
        entry("https://a.example/", status=-1),
        entry("https://a.example/", status=float("inf")),
        {**good, "startedDateTime": ""},
        {**good, "startedDateTime": None},
        entry("https://[bad/"),
        entry(7),
        None,
    ]
    recording = recordings.har(har(tmp_path, *odd, good))
    assert (recording.paths, recording.notes) == (
        ("/",),
        (f"left out of visit.har: entries that cannot be read ({len(odd)})",),
    )


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_access_logs_as_servers_write_them(tmp_path, form):
    path = tmp_path / "access.log"
    targets = ("/", "/about", "/blog/?page=2")
    version = "" if "=> generated" in form or "TCP_MISS" in form else " HTTP/1.1"
    path.write_text("".join(form.format(f"GET {target}{version}") + "\n" for target in targets))
    recording = recordings.access_log(path)
    assert (recording.paths, recording.notes) == (targets, ())


REQUEST = {"method": "GET", "host": "a.example:443", "uri": "/blog/?page=2"}
AZURE = {"httpMethod": "GET", "requestUri": "/blog/", "requestQuery": "page=2", "httpStatus": 200, "host": "a.example"}
APP_SERVICE = {"CsMethod": "GET", "CsUriStem": "/blog/", "CsUriQuery": "page=2", "ScStatus": 200, "TimeTaken": 9}
JSON_LINES = {
    "caddy": {"level": "info", "ts": 1.5, "request": {**REQUEST, "proto": "HTTP/2.0"}, "status": 200},
    "nginx": {"time_iso8601": "2026-11-22T12:00:01+00:00", "request": "GET /blog/?page=2 HTTP/1.1", "status": "200"},
    "nginx's parts": {"msec": "1.5", "request_method": "GET", "uri": "/blog/", "args": "page=2", "status": 200},
    "both": {"msec": "1.5", "method": "GET", "uri": "/blog/", "request": "GET /blog/?page=2 HTTP/2.0", "status": 200},
    "traefik": {
        "StartUTC": "2026-11-22T12:00:01.123456789Z",
        "RequestMethod": "GET",
        "RequestPath": "/blog/?page=2",
        "DownstreamStatus": 200,
    },
    "with words": {"message": "request_finished", "time": 1.5, "method": "GET", "path": "/blog/?page=2", "status": 200},
    "Google's balancer": {
        "httpRequest": {"requestMethod": "GET", "requestUrl": "https://a.example/blog/?page=2", "status": 200},
        "timestamp": "2026-11-28T12:00:01.123456789Z",
    },
    "Azure's gateway": {"time": "2026-11-28T12:00:01Z", "category": "AccessLog", "properties": AZURE},
    "Azure's front door": {
        "time": "2026-11-28T12:00:01.0000000Z",
        "properties": {
            "httpMethod": "GET",
            "requestUri": "https://a.example:443/blog/?page=2",
            "httpStatusCode": "200",
        },
    },
    "Azure's App Service": {"time": "2026-11-28T12:00:01Z", "properties": APP_SERVICE},
    "Cloudflare": {
        "ClientRequestHost": "a.example",
        "ClientRequestMethod": "GET",
        "ClientRequestURI": "/blog/?page=2",
        "EdgeResponseStatus": 200,
        "OriginResponseStatus": 0,
        "EdgeStartTimestamp": 1795867201123456000,
    },
    "Istio": {
        "start_time": "2026-11-28T12:00:01.123Z",
        "method": "GET",
        "path": "/blog/?page=2",
        "authority": "a.example",
        "response_code": 200,
        "duration": 5,
    },
    "ECS": {
        "@timestamp": "2026-11-28T12:00:01.123Z",
        "http": {"request": {"method": "GET"}, "response": {"status_code": 200, "body": {"bytes": 57}}},
        "url": {"path": "/blog/", "query": "page=2", "domain": "a.example"},
        "log": {"file": {"path": "/var/log/nginx/access.log"}},
    },
    "ECS with dots": {
        "@timestamp": "2026-11-28T12:00:01.123Z",
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "url.original": "/blog/?page=2",
        "log.file.path": "/var/log/nginx/access.log",
    },
    "an API gateway": {
        "requestTime": "28/Nov/2026:12:00:01 +0000",
        "httpMethod": "GET",
        "path": "/blog/?page=2",
        "status": "200",
    },
    "gunicorn's parts": {
        "time": "[28/Nov/2026:12:00:01 +0000]",
        "request_method": "GET",
        "request_path": "/blog/",
        "request_querystring": "page=2",
        "response_code": "200",
    },
    "Apache's parts": {
        "time": "28/Nov/2026:12:00:01 +0000",
        "request": "/blog/",
        "query": "?page=2",
        "method": "GET",
        "status": "200",
    },
    "django-structlog": {
        "request": "GET /blog/?page=2",
        "code": 200,
        "event": "request_finished",
        "timestamp": "2026-11-28T12:00:01.123Z",
        "level": "info",
    },
    "Django's server": {
        "asctime": "2026-11-28 12:00:01,123",
        "levelname": "INFO",
        "message": '"GET /blog/?page=2 HTTP/1.1" 200 57',
        "status_code": 200,
    },
    "a level called status": {
        "status": "info",
        "timestamp": 1795867201123,
        "http": {"method": "GET", "url": "https://a.example/blog/?page=2", "status_code": 200},
    },
    "an ingress": {
        "time": "2026-11-22T12:00:01+00:00",
        "vhost": "a.example",
        "method": "GET",
        "path": "/blog/",
        "request_query": "page=2",
        "status": 200,
    },
    "GELF": {"host": "web1", "short_message": "x", "_method": "GET", "_path": "/blog/?page=2", "_status": "200 OK"},
    "gunicorn's atoms": {"t": "[28/Nov/2026:12:00:01 +0000]", "r": "GET /blog/?page=2 HTTP/1.1", "s": "200"},
    "OpenTelemetry": {
        "attributes": {"http.method": "GET", "http.target": "/blog/?page=2", "http.status_code": 200},
        "timestamp": 1795867201123456789,
    },
    "Google's text": {
        "textPayload": FORMATS["combined"].format("GET /blog/?page=2 HTTP/1.1"),
        "timestamp": "2026-11-28T12:00:01Z",
    },
    "the journal's": {
        "__REALTIME_TIMESTAMP": "1795867201123456",
        "MESSAGE": list(b'INFO:     192.0.2.1:5 - "GET /blog/?page=2 HTTP/1.1" 200 OK'),
    },
    "JSON in a container's": {
        "log": '{"ts": 1.5, "request": {"method": "GET", "uri": "/blog/?page=2"}, "status": 200}\n',
        "stream": "stdout",
    },
    "a container's": {"log": FORMATS["combined"].format("GET /blog/?page=2 HTTP/1.1") + "\n", "stream": "stdout"},
}


@pytest.mark.parametrize("entry", JSON_LINES.values(), ids=JSON_LINES)
def test_logs_of_json(tmp_path, entry):
    path = tmp_path / "access.log"
    path.write_text(json.dumps(entry) + "\n{}\n")
    recording = recordings.access_log(path)
    assert (recording.paths, recording.notes) == (
        ("/blog/?page=2",),
        ("left out of access.log: lines of another format (1)",),
    )


@pytest.mark.parametrize("text", ["a", '"', '"GET ', "a=", "{", f"{AT} "])
def test_a_long_line_of_nothing_is_read_soon(tmp_path, text):
    path = tmp_path / "access.log"
    good = FORMATS["combined"].format("GET / HTTP/1.1")
    path.write_text(f"{text * (60_000 // len(text))}\n{good}\n")
    begun = time.process_time()
    assert recordings.access_log(path).paths == ("/",)
    assert time.process_time() - begun < 20


ROWS = {
    "CloudFront": """#Version: 1.0
#Fields: date\ttime\tx-edge-location\tsc-bytes\tc-ip\tcs-method\tcs(Host)\tcs-uri-stem\tsc-status\tcs-uri-query
2026-11-28\t12:00:01\tFRA2\t182\t192.0.2.10\tGET\td111.example.net\t/blog/\t200\tpage=2
2026-11-28\t12:00:02\tFRA2\t182\t192.0.2.10\tGET\td111.example.net\t/gone/\t404\t-
""",
    "IIS": """#Software: Microsoft Internet Information Services 10.0
#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) sc-status time-taken
2026-11-28 12:00:01 10.0.0.1 GET /blog/ page=2 443 - 192.0.2.10 Mozilla/5.0+(X11) 200 5
2026-11-28 12:00:02 10.0.0.1 GET /gone/ - 443 - 192.0.2.10 Mozilla/5.0+(X11) 404 200
""",
}


ROWS["Google's storage"] = """"time_micros","c_ip","cs_method","cs_uri","sc_status","cs_host","cs_user_agent"
"1795867201123456","192.0.2.10","GET","/blog/?page=2","200","a.example","odd ""agent"", 404"
"1795867202123456","192.0.2.10","GET","/gone/","404","a.example",""
"""


@pytest.mark.parametrize("text", ROWS.values(), ids=ROWS)
def test_rows_below_a_head_that_names_their_values(tmp_path, text):
    path = tmp_path / "access.log"
    path.write_text(text)
    recording = recordings.access_log(path)
    assert recording.paths == ("/blog/?page=2",)
    assert recording.notes == ("left out of access.log: requests without status 200 (1)",)


ENTRIES = [{"time": f"2026-11-28T12:00:0{i}Z", "method": "GET", "path": f"/{i}/", "status": 200} for i in (1, 2)]
DOCUMENTS = {
    "a list": json.dumps(ENTRIES),
    "a list over lines": json.dumps(ENTRIES, indent=2),
    "a list of lines": "[\n" + ",\n".join(map(json.dumps, ENTRIES)) + "\n]\n",
    "records": json.dumps({"records": ENTRIES}),
    "events": json.dumps({"events": [{"message": json.dumps(entry)} for entry in ENTRIES], "token": "x"}, indent=1),
    "objects over lines": "\n".join(json.dumps(entry, indent=2) for entry in ENTRIES),
    # A byte as nginx escapes it, outside of JSON's own escapes.
    "escaped bytes": "\n".join(json.dumps(entry)[:-1] + r', "agent": "\xE9 \x22"}' for entry in ENTRIES),
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("text", DOCUMENTS.values(), ids=DOCUMENTS)
def test_documents_of_json(tmp_path, text, encoding):
    path = tmp_path / "export.json"
    path.write_bytes(text.encode(encoding))
    recording = recordings.access_log(path)
    assert (recording.paths, recording.times_s, recording.notes) == (("/1/", "/2/"), (0.0, 1.0), ())


def test_a_request_that_two_programs_logged_is_one(tmp_path):
    path = tmp_path / "drain.log"
    router = '2026-11-28T12:00:01.1+00:00 heroku[router]: at=info method=GET path="/" host=a.example status=200\n'
    app = f"2026-11-28T12:00:01.2+00:00 app[web.{{}}]: {FORMATS['combined'].format('GET / HTTP/1.1')}\n"
    path.write_text(router + app.format(1) + router + app.format(2))
    recording = recordings.access_log(path)
    assert recording.paths == ("/", "/")
    assert recording.notes == ("left out of drain.log: requests that another program logged (2)",)


def test_a_time_in_front_of_json_or_as_a_number_is_known(tmp_path):
    path = tmp_path / "access.log"
    entry = '{"request": {"method": "GET", "uri": "/"}, "status": 200}'
    for begins in ("2026/11/22 12:00:0{}.5\tINFO\thandled request\t", "2026-11-22T12:00:0{}.5Z web "):
        path.write_text("".join(f"{begins.format(second)}{entry}\n" for second in (1, 3)))
        assert recordings.access_log(path).times_s == (0.0, 2.0)
    for name in ("a number first", "Squid's"):
        line = FORMATS[name].format("GET /")
        path.write_text(f"{line}\n{line.replace('7201.123', '7203.123')}\n")
        assert recordings.access_log(path).times_s == (0.0, 2.0)


def test_lines_without_a_time_keep_their_order(tmp_path):
    path = tmp_path / "uvicorn.log"
    path.write_text("".join(f'INFO:     192.0.2.1:5 - "GET /{name}/ HTTP/1.1" 200 OK\n' for name in "zay"))
    recording = recordings.access_log(path)
    assert (recording.paths, recording.times_s) == (("/z/", "/a/", "/y/"), ())
    with pytest.raises(BenchError, match="no times to replay"):
        replay.arrivals(Workload("x", "x", recording.paths, times_s=recording.times_s), 1, 1)


def test_a_format_can_be_named_by_its_fields(tmp_path):
    path = tmp_path / "access.log"
    path.write_text("9 GET|a.example|/blog/|page=2|404|200|1795867201.5\n" * 2)
    fields = "{method}|{host}|{target}|{query}|{}|{status}|{epoch}"
    recording = recordings.access_log(path, fields)
    assert (recording.paths, recording.times_s) == (("/blog/?page=2",) * 2, (0.0, 0.0))
    with pytest.raises(BenchError, match="its format is not known: 9 GET"):
        recordings.access_log(path)
    with pytest.raises(BenchError, match=r"fields '\{host\}': name \{request\} or "):
        recordings.access_log(path, "{host}")


PACKERS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize("name", [*PACKERS, "zip", "zst"])
def test_a_recording_may_be_packed(tmp_path, name):
    plain, path = log(tmp_path, ("GET /a/ HTTP/1.1", 200)), tmp_path / f"access.log.{name}"
    if name == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(plain, "logs/access.log")
            archive.writestr("__MACOSX/._access.log", b"x")
            archive.writestr("logs/.DS_Store", b"x")
    elif name == "zst":
        if not shutil.which("zstd"):
            with pytest.raises(BenchError, match="install the package zstd"):
                recordings.access_log(_written(path, b"\x28\xb5\x2f\xfd"))
            return
        subprocess.run(["zstd", "-q", plain, "-o", path], check=True)
    else:
        path.write_bytes(PACKERS[name](plain.read_bytes()))
    assert recordings.access_log(path).paths == ("/a/",)
    if name != "zip":
        with pytest.raises(BenchError, match=r"damaged or not yet whole|no GET"):
            recordings.access_log(_written(path, path.read_bytes()[:-20]))


def _written(path, content):
    path.write_bytes(content)
    return path


def test_a_har_file_is_of_the_host_of_its_first_page(tmp_path):
    page = {**entry("https://www.example.com/", 1), "_resourceType": "document"}
    beacons = [entry(f"https://stats.example.net/collect?v={i}", i) for i in range(9)]
    recording = recordings.har(
        har(tmp_path, *beacons, page, entry("https://www.example.com/b/?fbclid=IwAR0a1b2c3d4e", 9))
    )
    assert recording.paths == ("/", "/b/?fbclid=IwAR0a1b2c3d4e")


def test_a_first_page_that_leads_to_a_login_elsewhere_is_of_the_site(tmp_path):
    first = {**entry("https://a.example/", 1, status=302), "_resourceType": "document"}
    form = {**entry("https://login.example/authorize", 2), "_resourceType": "document"}
    page = {**entry("https://a.example/b/", 3), "_resourceType": "document"}
    assert recordings.har(har(tmp_path, first, form, page)).paths == ("/b/",)
    # One that leads elsewhere for good is not.
    assert recordings.har(har(tmp_path, first, form)).paths == ("/authorize",)


def test_an_archive_of_a_recording_and_its_bodies(tmp_path):
    path = tmp_path / "visit.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(har(tmp_path, entry("https://a.example/")), "har.har")
        archive.writestr("0f3b.html", "x")
    assert recordings.har(path).paths == ("/",)


def test_a_request_that_is_tried_again_is_one_step(tmp_path):
    page = entry("https://a.example/", 1)
    slow = {**entry("https://a.example/slow/", 2), "time": 3000}
    again = [entry("https://a.example/slow/", 4), entry("https://a.example/slow/", 6)]
    cached = {**entry("https://a.example/logo.png", 7), "_fromCache": "memory"}
    in_safari = {**entry("https://a.example/safari.png", 7), "_fetchType": "Disk Cache"}
    recording = recordings.har(
        har(tmp_path, page, slow, entry("https://a.example/busy/", 3, status=503), *again, cached, in_safari)
    )
    assert recording.paths == ("/", "/slow/", "/slow/")
    assert "requests that were tried again (1)" in recording.notes[0]
    assert "entries from the browser's cache (2)" in recording.notes[0]


def test_times_in_milliseconds_are_seconds(tmp_path):
    path, request = tmp_path / "access.log", {"method": "GET", "path": "/", "status": 200}
    path.write_text("\n".join(json.dumps({"timestamp": 1_700_000_000_000 + ms, **request}) for ms in (10, 260)))
    assert recordings.access_log(path).times_s == pytest.approx((0, 0.25), abs=1e-6)


@pytest.mark.parametrize("name", ["virtual hosts", "host after address"])
def test_of_several_sites_in_a_log_the_busiest_is_taken(tmp_path, name):
    path, line = tmp_path / "access.log", FORMATS[name]
    one, other = line.format("GET /one HTTP/1.1"), line.format("GET /other HTTP/1.1").replace("www.", "")
    path.write_text("\n".join([other, one, one]))
    recording = recordings.access_log(path)
    assert (recording.paths, recording.notes) == (
        ("/one",) * 2,
        ("left out of access.log: requests to other hosts (1)",),
    )


def test_what_no_address_may_hold_is_percent_encoded(tmp_path):
    recording = recordings.har(har(tmp_path, entry("https://a.example/a b/é/%20?q=x y&r=[1]#part")))
    assert recording.paths == ("/a%20b/%C3%A9/%20?q=x%20y&r=[1]",)
    lines = (r"GET /\xc3\xa9/\"x HTTP/1.1", 200), ("GET /é?q=%C3 HTTP/2.0", 200), ("GET //two/a b HTTP/1.1", 200)
    assert recordings.access_log(log(tmp_path, *lines)).paths == ("/%C3%A9/%22x", "/%C3%A9?q=%C3", "//two/a%20b")


def test_an_access_log_gives_frequencies_and_order(tmp_path):
    requests = [("GET / HTTP/1.1", 200), ("GET /a/ HTTP/1.1", 304), ("GET / HTTP/1.1", 200), ("GET /x HTTP/1.1", 404)]
    recording = recordings.access_log(log(tmp_path, *requests))
    assert (recording.paths, recording.times_s) == (("/", "/a/", "/"), (0.0, 1.0, 2.0))
    assert recording.notes == ("left out of access.log: requests without status 200 (1)",)


PARTS = ("1.000", "1.000", "1.200")


def test_the_requests_of_one_second_are_spread_over_it(tmp_path):
    path = tmp_path / "access.log"
    seconds = (0, 0, 1, 1, 1, 1)
    path.write_text("".join(LINE.format(second=second, request="GET / HTTP/1.1", status=200) for second in seconds))
    assert recordings.access_log(path).times_s == (0.0, 0.5, 1.0, 1.25, 1.5, 1.75)
    # But not if the server writes parts of a second.
    path.write_text("".join(FORMATS["the kit's haproxy"].replace("1.123", ms).format("GET /") + "\n" for ms in PARTS))
    assert recordings.access_log(path).times_s == pytest.approx((0, 0, 0.2))


def test_a_packed_log_is_read_and_no_further_than_needed(tmp_path, monkeypatch):
    monkeypatch.setattr(recordings, "MAX_REQUESTS", 2)
    monkeypatch.setattr(recordings, "LATE_REQUESTS", 3)
    slow, quick = (LINE.format(second=second, request=f"GET /{second} HTTP/1.1", status=200) for second in (0, 1))
    path = tmp_path / "access.log.2.gz"
    packed = gzip.compress((quick * 3 + slow + quick * 2).encode())
    # The end of the file is damaged, and nobody comes so far.
    path.write_bytes(packed + gzip.compress(b"x" * 100_000)[:-9])
    recording = recordings.access_log(path)
    assert (recording.paths, recording.times_s) == (("/0", "/1"), (0.0, 1.0))
    assert recording.notes == ("left out of access.log.2.gz: all requests after the first 2",)
    path.write_bytes(packed[:30])
    with pytest.raises(BenchError, match=r"access.log.2.gz: .*; it is damaged or not yet whole"):
        recordings.access_log(path)


SECRET = """/?pw=x /?PHPSESSID=x /files/Mg:1tXyZQ:Zk3jQb4_abc-DEF-ghi_JKL-mno-pqr_s/
/?token=x /?accessToken=x /?csrfmiddlewaretoken=x /?X-Amz-Signature=1 /?sig=a /?reset_code=1 /?code=4/0AX
/?next=/&api_key=1 /?user_email=x /?password= /?q=jane%40example.com /?t=eyJhbGciOi.eyJzdWIi.sig
/in?next=%2Fin%3Ftoken%3Dx /?k=0123456789abcdef0123456789abcdef /unsubscribe/jane@example.com/ /activate/8f0e12/
/?phone=123 /?phone_number=1 /?iban=x /?to=%2B49%20170%201234567 /?a=DE89370400440532013000 /?utm_id=jane@a.example
/reset/MQ/c5x3ab-9f8e/ /reset/MQ/c5x3ab-0123456789abcdef0123456789abcdef/ /m/dGhpcyBpcyBhIHRva2Vu9d8f7a6b5c4d3e2f/"""
HARMLESS = """/?author=jane /?state=open /?postcode=10115 /?country_code=de /?keyword=x /?design=1 /?monkey=1 /?id=5
/blog/top-10-python-tips-for-2026/ /products/550e8400-e29b-41d4-a716-446655440000/ /@jane/ /i/logo@2x.png
/static/app.3f2a1b9c8d7e3f2a1b9c8d7e.js /s/a.css?v=3f2a1b9c8d7e3f2a1b9c8d7e3f2a1b9c /reset/done/ /api/v1/items/
/?fbclid=IwAR0a1b2c3d4e5f6g7h8i9j0k1l2 /?gclid=Cj0KCQiA1b2C3d4E5f6G7h8I9 /?utm_source=a1b2c3d4e5f6g7h8i9j0k1
/?headphone=1 /login/?next=/blog/ /?q=a%40b /sessions/2/ /blog/authors/ //two/slashes"""


def test_secrets_are_known_by_a_word_of_their_name_or_by_their_value():
    assert [address for address in SECRET.split() if not has_secret(address)] == []
    assert [address for address in HARMLESS.split() if has_secret(address)] == []


def test_secrets_and_lines_of_another_format_are_left_out_with_a_count(tmp_path):
    path = log(tmp_path, ("GET /?page=1 HTTP/1.1", 200), ("GET /in?token=x HTTP/1.1", 200))
    path.write_text(path.read_text() + "nonsense\n")
    recording = recordings.access_log(path)
    assert recording.paths == ("/?page=1",)
    left_out = "lines of another format (1), requests that look like a secret (1)"
    assert recording.notes == (f"left out of access.log: {left_out}",)


def test_a_recording_without_a_get_is_one_line(tmp_path):
    for read, path in (
        (recordings.har, har(tmp_path, entry("https://shop.example/", method="POST"))),
        (recordings.har, har(tmp_path)),
        (recordings.access_log, log(tmp_path)),
    ):
        with pytest.raises(BenchError) as error:
            read(path)
        assert str(error.value) == f"{path}: no GET with status 200: name another recording"


def test_a_file_that_is_no_recording_is_one_line(tmp_path):
    path = tmp_path / "x"
    path.write_text("[" * 100_000)
    with pytest.raises(BenchError, match=r"no HAR file: RecursionError: .*; save one in a browser"):
        recordings.har(path)
    path.write_text("nonsense")
    with pytest.raises(BenchError, match=r"no HAR file: JSONDecodeError: .*; save one in a browser"):
        recordings.har(path)
    with pytest.raises(
        BenchError, match="x: its format is not known: nonsense  say what a line has, such as fields = "
    ):
        recordings.access_log(path)
    with pytest.raises(BenchError, match=r"nowhere: No such file or directory; correct its name or rights in"):
        recordings.steps(tmp_path / "nowhere")
