package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// readyVariable names the socket on which a service manager waits to hear that a service is ready
// (sd_notify(3)). A name that begins with @ is in the abstract namespace.
const readyVariable = "NOTIFY_SOCKET"

// tellReady tells the service manager that started this process, if one did, that it answers. No
// process that this one starts can do that any more.
func tellReady() error {
	socket := os.Getenv(readyVariable)
	if socket == "" {
		return nil
	}
	if err := os.Unsetenv(readyVariable); err != nil {
		return err
	}
	manager, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("telling the service manager that the server is ready: %w", err)
	}
	_, err = manager.Write([]byte("READY=1"))
	return errors.Join(err, manager.Close())
}
