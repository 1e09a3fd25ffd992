// Requests the paths of a file in turn, in a closed loop, and prints what was measured as one JSON object.
import http from 'k6/http';
import exec from 'k6/execution';
import { Counter } from 'k6/metrics';

const urls = open(__ENV.BENCH_PATHS).trim().split('\n').map((path) => __ENV.BENCH_URL + path);
const connections = Number(__ENV.BENCH_CONNECTIONS);
const params = { timeout: `${__ENV.BENCH_TIMEOUT_S}s`, redirects: 0 };

const errorsConnect = new Counter('errors_connect');
const errorsRead = new Counter('errors_read');
const errorsTimeout = new Counter('errors_timeout');
const notOk = new Counter('responses_not_2xx');

export const options = {
  scenarios: {
    closed_loop: {
      executor: 'constant-vus',
      vus: connections,
      duration: `${__ENV.BENCH_SECONDS}s`,
      gracefulStop: '0s',
    },
  },
  discardResponseBodies: true,
  noConnectionReuse: __ENV.BENCH_KEEP_ALIVE !== '1',
  summaryTrendStats: ['avg', 'med', 'p(90)', 'p(99)', 'max', 'count'],
  // Without tags k6 keeps no series for each URL and costs less.
  systemTags: [],
};

let next;

export default function () {
  // Each user begins at a place of its own, so that they do not all ask for the same page at the same time.
  if (next === undefined) next = Math.floor(((exec.vu.idInTest - 1) * urls.length) / connections) % urls.length;
  const answer = http.get(urls[next], params);
  next = (next + 1) % urls.length;
  if (answer.status >= 200 && answer.status < 300) return;
  count(answer);
}

// https://grafana.com/docs/k6/latest/javascript-api/error-codes/
function count(answer) {
  const code = answer.error_code;
  if (answer.status) notOk.add(1);
  else if (code === 1050) errorsTimeout.add(1);
  else if ((code >= 1100 && code < 1200) || (code >= 1210 && code < 1220) || (code >= 1300 && code < 1400)) errorsConnect.add(1);
  else errorsRead.add(1);
}

export function handleSummary(data) {
  const counts = {};
  for (const name of ['errors_connect', 'errors_read', 'errors_timeout', 'responses_not_2xx', 'http_reqs', 'data_received']) {
    counts[name] = name in data.metrics ? data.metrics[name].values.count : 0;
  }
  const latency = 'http_req_duration' in data.metrics ? data.metrics.http_req_duration.values : null;
  return { stdout: JSON.stringify({ duration_ms: data.state.testRunDurationMs, counts, latency }) + '\n' };
}
