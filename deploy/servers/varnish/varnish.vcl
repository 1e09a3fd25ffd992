{# The memory for what is not cached; server.toml has it, too. #}
{% set transient_mb = [128, 4 * max_body_mb] | max %}
# Varnish takes the clients' requests, answers with the pages that it has and passes all else to the chain behind it.
# Language: https://varnish-cache.org/docs/7.1/reference/vcl.html
# Where a subroutine does not return, the built-in one of that name follows.
vcl 4.1;

import std;

backend chain {
    .host = "{{ upstream.host }}";
    .port = "{{ upstream.port }}";
    .connect_timeout = 5s;
    # The servers inside give up first.
    .first_byte_timeout = {{ request_timeout_s + 10 }}s;
    .between_bytes_timeout = {{ request_timeout_s + 10 }}s;
}

{% if listener == "behind" %}
# The balancer or CDN in front.
acl proxies {
{% for network in proxies %}
    "{{ network.network_address }}"/{{ network.prefixlen }};
{% endfor %}
}
{% endif %}

sub vcl_recv {
    # The headers that name the client are overwritten, so that a client cannot forge them.
{% if listener == "behind" %}
    # The client is who the balancer or CDN in front names, the last address that is not one of those in front, of which
    # there may be three; from any other address its headers are not believed.
    if (client.ip !~ proxies || req.http.X-Forwarded-Proto !~ "^https\b") {
        set req.http.X-Forwarded-Proto = "http";
    } else {
        set req.http.X-Forwarded-Proto = "https";
    }
    # Some balancers add the client's port.
    set req.http.X-Forwarded-For = regsuball(req.http.X-Forwarded-For, "\[([0-9A-Fa-f:.]+)\](:\d+)?", "\1");
    set req.http.X-Forwarded-For = regsuball(req.http.X-Forwarded-For, "(\d+\.\d+\.\d+\.\d+):\d+", "\1");
    set req.http.X-Real-IP = client.ip;
{% for place in [1, 2, 3] %}
    if (std.ip(req.http.X-Real-IP, "0.0.0.0") ~ proxies && req.http.X-Forwarded-For) {
        set req.http.X-Real-IP = regsub(req.http.X-Forwarded-For, "^.*,\s*", "");
        set req.http.X-Forwarded-For = regsub(req.http.X-Forwarded-For, "\s*,?[^,]*$", "");
    }
{% endfor %}
    # A value that is no address is not believed either.
    set req.http.X-Real-IP = std.ip(req.http.X-Real-IP, client.ip);
    set req.http.X-Forwarded-For = req.http.X-Real-IP;
{% else %}
{% if listen.path %}
    # HAProxy, which ends TLS, names the client with the PROXY protocol.
{% endif %}
    set req.http.X-Real-IP = client.ip;
    set req.http.X-Forwarded-For = client.ip;
    set req.http.X-Forwarded-Proto = "{{ scheme }}";
{% endif %}
    # The same under names that no server between here and the site knows, so that none of them takes or changes them.
    # Without a dash: in CGI's variables a client's X_Front_Proto would have the same name as X-Front-Proto.
    set req.http.FrontAddress = req.http.X-Real-IP;
    set req.http.FrontProto = req.http.X-Forwarded-Proto;
    unset req.http.X-Forwarded-Host;
    unset req.http.X-Forwarded-Port;
    unset req.http.X-Forwarded-Ssl;
    unset req.http.Forwarded;

    # Invalidate one page (PURGE), or all whose path begins so (BAN). Only the site may, over a socket of its own: by its
    # address, a request that another server on this machine passes on would look like the site's.
    if (req.method == "PURGE" || req.method == "BAN") {
        if (local.socket != "purge") {
            return (synth(403, "Forbidden"));
        }
        if (req.method == "PURGE") {
            return (purge);
        }
        if (req.url !~ "^{{ page_re }}$") {
            return (synth(400, "Bad Request"));
        }
        # A dot stands for any character, which bans some pages more.
        ban("obj.http.X-Path ~ ^" + req.url);
        return (synth(200, "Banned"));
    }

    # Requests for a host that is not ours reach neither the cache nor the chain, but for a balancer's health checks,
    # which ask by address.
    if (req.http.Host !~ "(?i)^({{ server_names_re }})(:[0-9]+)?$" && req.url !~ "^/({{ health_re }})(\?|$)") {
        return (synth(400, "Bad Request"));
    }
{% if maintenance == "on" %}
    # While the file is there, all but the health checks is a 503 with the failure page (vcl_synth).
    if (std.file_exists("{{ maintenance_file }}") && req.url !~ "^/({{ health_re }})(\?|$)") {
        return (synth(503));
    }
{% endif %}

    # Only pages are cached: a path in its one spelling, by which the site purges it, too, without a query string. The chain
    # serves static files.
    if (req.method != "GET" && req.method != "HEAD") {
        if (std.integer(req.http.Content-Length, 0) > {{ max_body_mb * 1048576 }}) {
            return (synth(413, "Content Too Large"));
        }
        # A short body is taken whole before the chain is asked, so that the chain waits for no slow client. A long one goes on as it
        # comes: there is memory for many small things (Transient). One in chunks is sent on with its length, while there is room.
        if (std.integer(req.http.Content-Length, 0) <= 65536
            && (req.http.Content-Length || storage.Transient.free_space > {{ transient_mb // 2 }}MB)) {
            if (!std.cache_req_body({{ max_body_mb }}MB)) {
                return (synth(413, "Content Too Large"));
            }
        }
        return (pass);
    }
    # A large response, on its second way (vcl_deliver): client and chain are connected until its end.
    if (req.restarts > 0) {
        return (pipe);
    }
{% if https_only %}
    # What came over plain HTTP to a balancer is redirected by the site.
    if (req.http.X-Forwarded-Proto != "https") {
        return (pass);
    }
{% endif %}
    if (req.url !~ "^{{ page_re }}$" || req.url ~ "^/({{ bypass_re }})") {
        return (pass);
    }
    # A request with a session cookie bypasses the cache, whatever else the Cookie header holds.
    if (req.http.Authorization || req.http.Cookie ~ "{{ session_cookie_re }}") {
        return (pass);
    }
    # A part of a page (htmx, XMLHttpRequest) is no page for everybody. A GET with a type of a body is none of a browser's.
    if (req.http.HX-Request || req.http.X-Requested-With || req.http.Origin || req.http.Content-Type) {
        return (pass);
    }
    # Other cookies are no part of the key. The application gets them all, and does not mark a page that reads one.
    return (hash);
}

sub vcl_hash {
    # A page is the same under each of our hosts.
    hash_data(req.url);
    return (lookup);
}

sub vcl_pipe {
    # What the client sends after it is another request, which has to come past vcl_recv.
    set bereq.http.Connection = "close";
    return (pipe);
}

sub vcl_backend_fetch {
    # A server that answers before it has read a body closes the connection: no other visitor's request shall be sent on it.
    if (bereq.method != "GET" && bereq.method != "HEAD") {
        set bereq.http.Connection = "close";
    }
    # Varnish would ask for gzip whatever the visitor takes; it compresses pages itself, if at all.
    if (!bereq.uncacheable) {
        unset bereq.http.Accept-Encoding;
    }
    return (fetch);
}

sub vcl_backend_response {
{% if compress_pages == "on" %}
    # A page is stored compressed, once; Varnish unpacks it for those who do not take gzip. Default: stored as it came.
    # https://varnish-cache.org/docs/7.1/users-guide/compression.html
    # An answer without a length may be a stream, whose pieces gzip would hold back. An ETag is that of the bytes as they are.
    if (beresp.http.Content-Length && beresp.http.Content-Type ~ "(?i)^(text/|application/json)"
        && !beresp.http.Content-Encoding && !beresp.http.ETag) {
        if (!bereq.uncacheable || bereq.http.Accept-Encoding ~ "gzip") {
            set beresp.do_gzip = true;
        }
        # Named with each answer, compressed or not.
        if (!beresp.http.Vary) {
            set beresp.http.Vary = "Accept-Encoding";
        } else if (beresp.http.Vary !~ "(?i)accept-encoding") {
            set beresp.http.Vary = beresp.http.Vary + ", Accept-Encoding";
        }
    }
{% endif %}
    if (bereq.uncacheable) {
        return (deliver);
    }
    # Cached: what the application marks; it looks at status, type, cookies and all other headers. Sent in chunks, a part
    # would look like the whole page. For ten seconds no request waits for another that gets an uncacheable page
    # (hit-for-miss).
    if (beresp.http.X-Cacheable != "1" || !beresp.http.Content-Length) {
        set beresp.uncacheable = true;
        set beresp.ttl = 10s;
        set beresp.grace = 0s;
        return (deliver);
    }
    # One time to live for all layers, {{ cache_seconds }} s: for its first half a page is fresh; in the second, a request
    # gets the stale page at once while one request in the background renders it anew.
    set beresp.ttl = {{ (cache_seconds + 1) // 2 }}s;
    set beresp.grace = {{ cache_seconds // 2 }}s;
    set beresp.keep = 0s;
    # For visitors the page still varies with the cookie (their browsers cache it), not for Varnish (see vcl_recv).
    if (beresp.http.Vary) {
        set beresp.http.X-Vary = beresp.http.Vary;
        unset beresp.http.Vary;
    }
    set beresp.http.X-Path = bereq.url;
    return (deliver);
}

# Answers of Varnish's own. While the site is switched off and when the chain does not answer: a page of our own with the
# security headers, and when to come back.
sub vcl_synth {
    unset resp.http.X-Varnish;
    if (resp.status == 503) {
        set resp.http.Content-Type = "text/html; charset=utf-8";
        set resp.http.Retry-After = "{{ retry_after_s }}";
        set resp.http.Cache-Control = "no-store";
{% for name, value in page_headers.items() %}
        set resp.http.{{ name }} = {"{{ value }}"};
{% endfor %}
        synthetic(std.fileread("{{ conf }}/unavailable.html"));
        return (deliver);
    }
    set resp.http.Content-Type = "text/plain";
{% for name, value in static_headers.items() %}
    set resp.http.{{ name }} = "{{ value }}";
{% endfor %}
    synthetic(resp.status + " " + resp.reason);
    return (deliver);
}

sub vcl_backend_error {
    set beresp.http.Content-Type = "text/html; charset=utf-8";
    set beresp.http.Retry-After = "{{ retry_after_s }}";
    set beresp.http.Cache-Control = "no-store";
{% for name, value in page_headers.items() %}
    set beresp.http.{{ name }} = {"{{ value }}"};
{% endfor %}
    synthetic(std.fileread("{{ conf }}/unavailable.html"));
    set beresp.uncacheable = true;
    return (deliver);
}

sub vcl_deliver {
    # Varnish takes a response as fast as it comes, however slowly its client reads. A large one that it does not cache is asked for once
    # more and handed through, so that slow readers do not fill its memory.
    if (obj.uncacheable && std.integer(resp.http.Content-Length, 0) > 262144 && req.method == "GET" && req.restarts == 0
        && !req.http.Content-Length && !req.http.Transfer-Encoding) {
        return (restart);
    }
    if (resp.http.X-Vary) {
        set resp.http.Vary = resp.http.X-Vary;
        unset resp.http.X-Vary;
    }
    # Without Last-Modified Varnish would compare its own Date, and not send a page that was edited within that second.
    if (!resp.http.Last-Modified) {
        unset req.http.If-Modified-Since;
    }
    unset resp.http.X-Path;
    unset resp.http.X-Cacheable;
    unset resp.http.X-Varnish;
    unset resp.http.Via;
    return (deliver);
}
