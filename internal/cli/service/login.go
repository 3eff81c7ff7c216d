package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/spf13/cobra"
	"golang.org/x/oauth2"
	"mvdan.cc/sh/v3/syntax"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/server/listen"
	"fairway/internal/wire"
)

// LoginCommand is `fairway login`.
func (c *Commands) LoginCommand() *cobra.Command {
	output := ""
	command := &cobra.Command{
		Use:   "login",
		Short: "Log in at a server by your identity provider",
		Long: `Log in at the identity provider of a server that takes workflows, in a browser on any
machine, and write a file with a token by which --server or $` + console.ServerVariable + ` reach the
server. --server names the server's file .fairway/public, which is no secret, or an
older file of yours.`,
		Example: "  fairway login --server fairway.public\n  fairway login --server fairway.public -o ada.service",
		Args:    console.NoArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			if output == "" {
				folder, err := os.UserConfigDir()
				if err != nil {
					return console.Fail(console.ExitUsage, "name a file with -o", "it is not known where your settings are: %w", err)
				}
				output = filepath.Join(folder, "fairway", "service")
			}
			return c.logIn(command.Context(), output)
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "", "the `file` to write (default: fairway/service in the "+
		"folder of your settings)")
	return command
}

func (c *Commands) logIn(ctx context.Context, output string) error {
	if c.Service == "" {
		return console.Fail(console.ExitUsage, "name the file .fairway/public of the server with --server",
			"it is not said which server is meant")
	}
	connection, err := dialPublic(ctx, c.Service)
	if err != nil {
		return err
	}
	defer connection.Close()
	way, err := connection.Rights.LoginWay(ctx, &wire.LoginWayRequest{})
	if err != nil {
		return console.Explained(err)
	}
	proof, err := c.prove(ctx, way)
	if err != nil {
		return err
	}
	idToken, _ := proof.Extra("id_token").(string)
	if idToken == "" {
		return fmt.Errorf("%s has told no id_token: the client %s needs the scope openid there", way.GetIssuer(),
			way.GetClient())
	}
	answer, err := connection.Rights.Login(ctx, &wire.LoginRequest{IdToken: idToken, AccessToken: proof.AccessToken})
	if err != nil {
		return console.Explained(err)
	}
	if err := writeService(output, answer.GetConnection()); err != nil {
		return err
	}
	word, err := syntax.Quote(output, syntax.LangBash)
	if err != nil {
		return err
	}
	answer.Token, answer.Connection = "", nil
	return c.Answer(answer, func() {
		fmt.Fprintf(c.Out, "you are %s, with the role %s, %s\n", screen.OneLine(answer.GetSummary().GetUser()),
			answer.GetSummary().GetRole(), loginEnd(answer.GetSummary()))
		fmt.Fprintf(c.Out, "export %s=%s\n", console.ServerVariable, word)
	})
}

func loginEnd(t *wire.TokenSummary) string { return "until " + minute(t.GetExpires()) }

// prove has the person log in at the identity provider, by the device flow.
func (c *Commands) prove(ctx context.Context, way *wire.LoginWayResponse) (*oauth2.Token, error) {
	provider, err := oidc.NewProvider(ctx, way.GetIssuer())
	if err != nil {
		return nil, fmt.Errorf("the identity provider is not reached: %w", err)
	}
	client := oauth2.Config{
		ClientID: way.GetClient(), ClientSecret: way.GetClientSecret(), Endpoint: provider.Endpoint(),
		Scopes: way.GetScopes(),
	}
	if client.Endpoint.DeviceAuthURL == "" {
		return nil, fmt.Errorf("%s does not offer the device flow: ask an administrator of the server for a token",
			way.GetIssuer())
	}
	device, err := client.DeviceAuth(ctx)
	if err != nil {
		return nil, fmt.Errorf("the identity provider does not begin a login: %w", err)
	}
	at := device.VerificationURI
	if device.VerificationURIComplete != "" {
		at = device.VerificationURIComplete
	}
	c.Announce(fmt.Sprintf("fairway: open %s in a browser and confirm the code %s", at, device.UserCode))
	token, err := client.DeviceAccessToken(ctx, device)
	if err != nil {
		return nil, fmt.Errorf("nobody has logged in: %w", err)
	}
	return token, nil
}

// dialPublic reaches a server by a file that need not have a token, and by its folder.
func dialPublic(ctx context.Context, address string) (*listen.Connection, error) {
	info, err := os.Stat(address)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, console.Fail(console.ExitUsage, "ask its administrator for the file .fairway/public",
			"--server %s: there is no such file", address)
	case err != nil:
		return nil, err
	case info.IsDir():
		return console.DialServiceFolder(ctx, address)
	}
	connection, err := listen.DialPublic(ctx, address)
	if err != nil {
		return nil, console.NotDialled(address, err)
	}
	return connection, nil
}
