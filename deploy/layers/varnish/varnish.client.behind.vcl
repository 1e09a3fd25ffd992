# The client is who the balancer or CDN in front names, the last address that is not one of those in front, of which there may
# be three; from any other address its headers are not believed.

acl proxies {
{% for network in proxies %}
    "{{ network.network_address }}"/{{ network.prefixlen }};
{% endfor %}
}

sub name_client {
    if (client.ip !~ proxies || req.http.X-Forwarded-Proto != "https") {
        set req.http.X-Forwarded-Proto = "http";
    }
    set req.http.X-Real-IP = client.ip;
{% for place in [1, 2, 3] %}
    if (std.ip(req.http.X-Real-IP, "0.0.0.0") ~ proxies && req.http.X-Forwarded-For) {
        set req.http.X-Real-IP = regsub(req.http.X-Forwarded-For, "^.*,\s*", "");
        set req.http.X-Forwarded-For = regsub(req.http.X-Forwarded-For, "\s*,?[^,]*$", "");
    }
{% endfor %}
    # What is no address is not believed either.
    set req.http.X-Real-IP = std.ip(req.http.X-Real-IP, client.ip);
    set req.http.X-Forwarded-For = req.http.X-Real-IP;
}
