# The client is who the connection comes from.
sub name_client {
    set req.http.X-Real-IP = client.ip;
    set req.http.X-Forwarded-For = client.ip;
    set req.http.X-Forwarded-Proto = "http";
}
