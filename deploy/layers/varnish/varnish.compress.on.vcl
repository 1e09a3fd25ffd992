# A page is stored compressed, once; Varnish unpacks it for those who do not take gzip. Default: stored as it came.
# https://varnish-cache.org/docs/7.1/users-guide/compression.html
sub compress_page {
    # An ETag is that of the bytes as they are.
    if (beresp.http.Content-Type ~ "(?i)^(text/|application/json)" && !beresp.http.Content-Encoding && !beresp.http.ETag) {
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
}
