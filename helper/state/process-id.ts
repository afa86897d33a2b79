// A process as long as its number is not given to another one. Kept in the database, compared by helper/machines.
export interface ProcessId {
  readonly pid: number;
  /** Clock ticks after boot, field 22 of /proc/PID/stat. */
  readonly startTime: number;
}
