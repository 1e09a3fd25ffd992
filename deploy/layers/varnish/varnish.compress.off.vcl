# Pages are stored and sent as the application made them.
sub compress_page {
}
