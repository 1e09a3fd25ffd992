# A page is stored compressed, once; Varnish unpacks it for those who do not take gzip. Default: stored as it came.
# https://varnish-cache.org/docs/7.1/users-guide/compression.html
sub compress_page {
    if (beresp.http.Content-Type ~ "(?i)^(text/|application/json)" && !beresp.http.Content-Encoding
        && (!bereq.uncacheable || bereq.http.Accept-Encoding ~ "gzip")) {
        set beresp.do_gzip = true;
    }
}
