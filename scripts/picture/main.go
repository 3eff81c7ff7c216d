// Picture runs a command in a pseudo-terminal and draws what the terminal shows
// as SVG: the screen in the middle of the run, and the screen at its end. The
// picture of the README is made by it (`make picture`).
//
//	go run ./scripts/picture -C FOLDER -o FILE.svg COMMAND [ARGUMENT...]
//
// The text is text of the real run; nothing is added but the line with the
// command. A command that fails gives no picture.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

func main() {
	folder := flag.String("C", ".", "folder in which the command runs")
	output := flag.String("o", "", "file to write; none: standard output")
	columns := flag.Int("columns", 98, "width of the terminal")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "picture: no command; say: picture -o run.svg fairway run workflow.yaml")
		os.Exit(2)
	}
	if err := draw(*folder, *output, *columns, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func draw(folder, output string, columns int, command []string) error {
	screen := newTerminal(columns)
	if err := run(folder, command, screen); err != nil {
		return fmt.Errorf("run %s: %w", strings.Join(command, " "), err)
	}
	picture := svg(strings.Join(command, " "), columns, screen.frames, screen.lines())
	if output == "" {
		_, err := io.WriteString(os.Stdout, picture)
		return err
	}
	return os.WriteFile(output, []byte(picture), 0o644)
}

// run runs a command whose terminal is screen, until the command has ended and
// all that it printed has arrived.
func run(folder string, command []string, screen *terminal) error {
	ours, theirs, err := openTerminal(screen.width)
	if err != nil {
		return err
	}
	defer ours.Close()
	child := exec.Command(command[0], command[1:]...)
	child.Dir = folder
	child.Env = append(os.Environ(), "TERM=xterm-256color")
	child.Stdin, child.Stdout, child.Stderr = theirs, theirs, theirs
	child.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	err = child.Start()
	theirs.Close()
	if err != nil {
		return err
	}
	// EIO: the last process that had the other end open has closed it.
	_, copied := io.Copy(screen, ours)
	if err := child.Wait(); err != nil {
		return err
	}
	if copied != nil && !errors.Is(copied, unix.EIO) {
		return copied
	}
	return nil
}

// openTerminal returns both ends of a new pseudo-terminal.
func openTerminal(columns int) (ours, theirs *os.File, err error) {
	ours, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			ours.Close()
		}
	}()
	fd := int(ours.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, err
	}
	size := unix.Winsize{Row: 40, Col: uint16(columns)}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &size); err != nil {
		return nil, nil, err
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	return ours, theirs, err
}
