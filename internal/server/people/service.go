package people

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"fairway/internal/access"
	"fairway/internal/audit"
	"fairway/internal/rights"
	"fairway/internal/wire"
)

// Service has the calls about tokens, logins and the audit log. A nil Door is that of a server that does
// not last.
type Service struct{ Door *Door }

// Limits of answers.
const (
	// DefaultAudited is how many entries ListAudit returns when it is not told, and MaxAudited at most.
	DefaultAudited = 100
	MaxAudited     = 10_000
)

var errNotLasting = precondition(errors.New("this server runs the workflow of one folder, and takes orders from its " +
	"owner only; `fairway serve` starts one for many people"))

func (s *Service) door() (*Door, error) {
	if s.Door == nil {
		return nil, errNotLasting
	}
	return s.Door, nil
}

// WhoAmI tells who the caller is.
func (s *Service) WhoAmI(ctx context.Context, _ *wire.WhoAmIRequest) (*wire.WhoAmIResponse, error) {
	d, err := s.door()
	if err != nil {
		return nil, err
	}
	p := rights.Of(ctx)
	groups := slices.Clone(p.Groups)
	if p.User != "" {
		groups = append(groups, d.config.GroupsOf(p.User)...)
	}
	groups = rights.NamedGroups(groups)
	return &wire.WhoAmIResponse{
		User: p.User, Groups: groups, Role: string(p.Role), Proof: string(p.How), Token: p.Token,
		Expires: instant(d.Expires(p.Token)),
	}, nil
}

// CreateToken makes a token.
func (s *Service) CreateToken(ctx context.Context, r *wire.CreateTokenRequest) (*wire.CreateTokenResponse, error) {
	d, err := s.door()
	if err != nil {
		return nil, err
	}
	t := rights.Token{
		Role: rights.Role(r.GetRole()), User: r.GetUser(), Site: r.GetSite(), Note: r.GetNote(), How: rights.ByToken,
		By: rights.Of(ctx).Name(),
	}
	switch seconds := r.GetExpiresSeconds(); {
	case seconds < 0 || seconds > int64(rights.MaxLife/time.Second):
		return nil, invalid(fmt.Errorf("a token cannot be good for %d seconds: it expires within ten years, or never",
			seconds))
	case seconds > 0:
		t.Expires = d.config.Now().Add(time.Duration(seconds) * time.Second).UTC().Truncate(time.Second)
	}
	var settings json.RawMessage
	if t.Role == rights.Pilot {
		var known bool
		if settings, known = d.pilotSettings(t.Site); !known {
			return nil, invalid(fmt.Errorf("the server has no site %.100q whose pilots come over a network", t.Site))
		}
	}
	made, text, err := d.issue(ctx, t)
	if err != nil {
		return nil, err
	}
	connection, err := d.connection(&made, text, settings)
	if err != nil {
		return nil, err
	}
	return &wire.CreateTokenResponse{Summary: d.summary(&issued{Token: made}), Token: text, Connection: connection}, nil
}

func (d *Door) pilotSettings(site string) (json.RawMessage, bool) {
	if d.config.PilotSettings == nil {
		return nil, false
	}
	return d.config.PilotSettings(site)
}

// connection is the text of a file by which who has a token reaches the server; empty where nobody does
// over a network.
func (d *Door) connection(t *rights.Token, text string, settings json.RawMessage) ([]byte, error) {
	if d.config.Connection == nil {
		return nil, nil
	}
	c, ok := d.config.Connection()
	if !ok {
		return nil, nil
	}
	c.Launch, c.Token = access.Person, access.Token(text)
	if t.Role == rights.Pilot {
		c.Launch, c.Site, c.Pilot, c.Certificate = launchOf(t), t.Site, settings, ""
	}
	return c.Encode()
}

// ListTokens lists tokens.
func (s *Service) ListTokens(ctx context.Context, _ *wire.ListTokensRequest) (*wire.ListTokensResponse, error) {
	d, err := s.door()
	if err != nil {
		return nil, err
	}
	response, p := new(wire.ListTokensResponse), rights.Of(ctx)
	d.mu.RLock()
	owner := d.owner
	d.mu.RUnlock()
	if p.Role == rights.Admin && owner.good != nil {
		response.Tokens = append(response.Tokens, &wire.TokenSummary{
			Number: OwnerNumber, Role: string(rights.Admin), Proof: string(rights.ByOwner),
			Note: "the file .fairway/service", Used: second(owner.last.Load()),
		})
	}
	for _, t := range d.listed(p) {
		response.Tokens = append(response.Tokens, d.summary(t))
	}
	return response, nil
}

func (d *Door) summary(t *issued) *wire.TokenSummary {
	summary := &wire.TokenSummary{
		Number: t.Number, Role: string(t.Role), User: t.User, Groups: t.Groups, Site: t.Site, Issued: instant(t.Issued),
		Expires: instant(t.Expires), Expired: !t.Good(d.config.Now()), By: t.By, Note: t.Note, Proof: string(t.How),
	}
	if t.last != nil {
		summary.Used = second(t.last.Load())
	}
	return summary
}

// RevokeToken makes a token worthless.
func (s *Service) RevokeToken(ctx context.Context, r *wire.RevokeTokenRequest) (*wire.RevokeTokenResponse, error) {
	d, err := s.door()
	if err != nil {
		return nil, err
	}
	if err := d.revoke(ctx, rights.Of(ctx), r.GetNumber()); err != nil {
		return nil, err
	}
	return &wire.RevokeTokenResponse{}, nil
}

// LoginWay tells where one logs in.
func (s *Service) LoginWay(context.Context, *wire.LoginWayRequest) (*wire.LoginWayResponse, error) {
	d, err := s.door()
	if err != nil {
		return nil, err
	}
	l := d.config.Settings.Login
	if l == nil {
		return nil, errNoLogin
	}
	return &wire.LoginWayResponse{Issuer: l.Issuer, Client: l.Client, ClientSecret: l.Secret, Scopes: l.Scopes}, nil
}

// Login gives a token to who has logged in.
func (s *Service) Login(ctx context.Context, r *wire.LoginRequest) (*wire.LoginResponse, error) {
	d, err := s.door()
	if err != nil {
		return nil, err
	}
	p, err := d.verify(ctx, r.GetIdToken(), r.GetAccessToken())
	if err != nil {
		return nil, err
	}
	made, text, err := d.issue(ctx, rights.Token{
		User: p.User, Groups: p.Groups, Role: p.Role, How: rights.ByLogin, By: p.User,
		Expires: d.config.Now().Add(d.config.Settings.Login.Lasts).UTC().Truncate(time.Second),
	})
	if err != nil {
		return nil, err
	}
	connection, err := d.connection(&made, text, nil)
	if err != nil {
		return nil, err
	}
	return &wire.LoginResponse{Summary: d.summary(&issued{Token: made}), Token: text, Connection: connection}, nil
}

// ListAudit lists what people have done.
func (s *Service) ListAudit(_ context.Context, r *wire.ListAuditRequest) (*wire.ListAuditResponse, error) {
	d, err := s.door()
	if err != nil {
		return nil, err
	}
	if d.config.Audit == nil {
		return nil, errNotLasting
	}
	most := DefaultAudited
	if r.GetLimit() > 0 {
		most = min(int(r.GetLimit()), MaxAudited)
	}
	entries, more, err := d.config.Audit.Read(most, func(e *audit.Entry) bool {
		return (r.GetUser() == "" || e.User == r.GetUser()) &&
			(r.GetSince() == nil || !e.At.Before(r.GetSince().AsTime()))
	})
	if err != nil {
		return nil, connect.NewError(connect.CodeInternal, err)
	}
	response := &wire.ListAuditResponse{More: more}
	for i := range entries {
		e := &entries[i]
		response.Entries = append(response.Entries, &wire.AuditEntry{
			At: instant(e.At), User: e.User, Role: e.Role, Proof: e.Proof, Token: e.Token, From: e.From, Call: e.Call,
			Run: e.Run, About: e.About, Outcome: e.Outcome, Repeated: e.Repeated,
		})
	}
	return response, nil
}

func instant(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func second(unix int64) *timestamppb.Timestamp {
	if unix == 0 {
		return nil
	}
	return &timestamppb.Timestamp{Seconds: unix}
}
