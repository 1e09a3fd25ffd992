# While the file is there, all but the health checks is a 503 with the failure page (vcl_synth).
sub in_maintenance {
    if (std.file_exists("{{ maintenance_file }}") && req.url !~ "^/({{ health_re }})(\?|$)") {
        return (synth(503));
    }
}
