// Package forecast foretells how long a run takes under other conditions, from what is recorded of
// one: the TaskQueue of package dispatch replays its jobs under virtual time (package sim), with
// other pilots, caches or times.
//
//   - [Of] fits a [Model] to a recorded run: what each attempt took beside its command, the speed of
//     storage, how long the batch system let pilots wait, and how much jobs slow each other down.
//   - [Model.Foretell] replays it with a [Change]. The run is also replayed as it was: the ratio of
//     the recorded time to that corrects what is foretold.
//   - The interval comes from replays that draw the times of each job again, from those recorded of
//     its step. It says what chance does to the times of jobs, and not what the model leaves out;
//     [Model.Notes] tells what that is.
//   - The same model, change and number of draws give the same answer.
//
// model.go reads what is recorded, fit.go measures, replay.go replays, and plan.go foretells jobs
// that have not run.
package forecast
