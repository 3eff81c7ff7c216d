// Package folders runs workflows in folders that were linked, moved, copied and
// mounted, with foreign files wherever Fairway writes and removes, and makes sure
// that nothing foreign is touched.
package folders
