/**
 * What a load costs the browser: CPU time of its processes, and what its main thread was busy with.
 *
 * Source: Chrome DevTools Protocol, SystemInfo.getProcessInfo (CPU seconds since a process began)
 * and Performance.getMetrics (seconds of wall time in tasks, script, layout, style, compiling);
 * Linux, Documentation/scheduler/sched-stats.rst (/proc/<pid>/task/<tid>/schedstat).
 */

import { readdirSync, readFileSync } from 'node:fs';

const DURATIONS = {
  task_s: 'TaskDuration',
  script_s: 'ScriptDuration',
  layout_s: 'LayoutDuration',
  style_s: 'RecalcStyleDuration',
  compile_s: 'V8CompileDuration',
};

/** CPU seconds of each of the browser's processes so far, by process id. */
export async function readProcesses(session) {
  const { processInfo } = await session.connection().send('SystemInfo.getProcessInfo');
  return new Map(processInfo.map(({ id, cpuTime }) => [id, cpuTime]));
}

/** Seconds that each thread of `processes` was ready to run so far, and did not, by its path. */
export function readQueued(processes) {
  const queued = new Map();
  for (const id of processes.keys()) {
    for (const thread of tryTo(() => readdirSync(`/proc/${id}/task`)) ?? []) {
      const path = `/proc/${id}/task/${thread}/schedstat`;
      const text = tryTo(() => readFileSync(path, 'ascii'));
      if (text) {
        queued.set(path, Number(text.split(' ')[1]) / 1e9);
      }
    }
  }
  return queued;
}

/** What `read` gives; nothing of what ends meanwhile. */
function tryTo(read) {
  try {
    return read();
  } catch (error) {
    if (!['ENOENT', 'ESRCH'].includes(error.code)) {
      throw error;
    }
    return null;
  }
}

/** Of the thread that waited longest between two readings. */
export function longestQueued(before, after) {
  const waited = [...after].map(([path, seconds]) => seconds - (before.get(path) ?? 0));
  return Math.max(0, ...waited);
}

/**
 * What the load event cost, in seconds: CPU of all processes since they began (`cpu_s`), and what
 * the page's main thread was busy with.
 *
 * @param {object} metrics as readMetrics() gives them after the load event
 * @param {Map<number, number>} after processes after the load event
 * @param {?Map<number, number>} before processes before the navigation, for `load_cpu_s`
 */
export function costOf(metrics, after, before) {
  const cost = { cpu_s: 0 };
  for (const [ours, theirs] of Object.entries(DURATIONS)) {
    cost[ours] = metrics[theirs];
  }
  for (const cpu of after.values()) {
    cost.cpu_s += cpu;
  }
  if (before) {
    const earlier = [...after.keys()].reduce((sum, id) => sum + (before.get(id) ?? 0), 0);
    cost.load_cpu_s = cost.cpu_s - earlier;
  }
  return cost;
}
