package stapler_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"time"

	"golang.org/x/crypto/ocsp"

	"quayside.io/proxy/stapler"
)

// issue makes an authority, and a certificate of it that names a responder.
func issue(responder string) (issuer *x509.Certificate, key *ecdsa.PrivateKey, c *tls.Certificate, err error) {
	key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, err
	}
	until := time.Now().Add(time.Hour)
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: until, IsCA: true, BasicConstraintsValid: true}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		return nil, nil, nil, err
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: until, DNSNames: []string{"shop.example.com"}, OCSPServer: []string{responder}}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), key)
	if err != nil {
		return nil, nil, nil, err
	}
	if issuer, err = x509.ParseCertificate(caDER); err != nil {
		return nil, nil, nil, err
	}
	c = &tls.Certificate{Certificate: [][]byte{leafDER, caDER}, PrivateKey: key}
	c.Leaf, err = x509.ParseCertificate(leafDER)
	return issuer, key, c, err
}

// A certificate is served as it is until its responder has said that it is good.
func Example() {
	var status []byte
	responder := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/ocsp-response")
		w.Write(status)
	}))
	defer responder.Close()
	issuer, key, c, err := issue(responder.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	good := ocsp.Response{Status: ocsp.Good, SerialNumber: c.Leaf.SerialNumber, ThisUpdate: time.Now(), NextUpdate: time.Now().Add(time.Hour)}
	if status, err = ocsp.CreateResponse(issuer, issuer, good, key); err != nil {
		fmt.Println(err)
		return
	}

	s := stapler.New(stapler.Options{})
	fmt.Println("stapled:", s.With(c).OCSPStaple != nil)
	s.Set([]*tls.Certificate{c})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	for s.With(c).OCSPStaple == nil {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("stapled:", s.With(c).OCSPStaple != nil)
	stop()
	<-ended
	// Output:
	// stapled: false
	// stapled: true
}
